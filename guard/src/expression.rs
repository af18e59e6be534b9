//! The expressions of a unique index, said once more about a new row.
//!
//! A guard must know which standing row a new one would take the place of. For an index on columns that is plain. For an
//! index on an expression, or with a WHERE of its own, the expression must be said of both rows: of the standing one as it
//! is written in the index, of the new one with `new.` before each column. That takes no knowledge of SQL's grammar, only
//! of which words are columns; where a word could be both a column and a keyword, the answer is 'cannot tell', and the
//! table is not guarded rather than guarded wrongly.

use super::sql::{Kind, Token, same, tokens};

/// Words that are operators or values in an expression, and names where a column is called so.
const AMBIGUOUS: [&str; 8] = [
    "like",
    "glob",
    "regexp",
    "match",
    "end",
    "current_date",
    "current_time",
    "current_timestamp",
];

/// What every table without a column of that name calls its rows' ids.
pub const ROWIDS: [&str; 3] = ["rowid", "_rowid_", "oid"];

/// An expression of an index, in which every column can be said in other words.
#[derive(Clone, Debug)]
pub struct Expression {
    /// What stands before each column, and the column's position.
    parts: Vec<(String, usize)>,
    /// What stands behind the last one.
    end: String,
}

impl Expression {
    /// Reads an expression over these columns.
    pub fn read(text: &str, columns: &[&str]) -> Result<Self, String> {
        let text = one_line(text);
        let all = tokens(&text);
        let is_sign = |i: usize, sign: &str| all.get(i).is_some_and(|token| token.is_sign(sign));
        let mut parts = Vec::new();
        let (mut i, mut read) = (0, 0);
        while let Some(mut token) = all.get(i) {
            if token.is_word("collate") {
                i += 2; // a collation's name is no column
                continue;
            }
            if token.is_word("as") {
                i = past_type(&all, i); // nor is a type's
                continue;
            }
            let start = token.start;
            // In a predicate, a column may be qualified: the last name counts.
            while token.identifier().is_some() && is_sign(i + 1, ".") {
                i += 2;
                token = all.get(i).ok_or("it ends with a dot")?;
            }
            i += 1;
            let is_called = is_sign(i, "(");
            let Some(named) = token.identifier().filter(|_| !is_called) else {
                continue; // nor a function's
            };
            if let Some(column) = columns.iter().position(|column| same(column, &named)) {
                if token.kind == Kind::Word && AMBIGUOUS.iter().any(|word| same(word, &named)) {
                    return Err(format!("'{named}' is both a column and a keyword in it"));
                }
                let before = text.get(read..start).unwrap_or_default();
                parts.push((before.to_owned(), column));
                read = token.end();
            } else if ROWIDS.iter().any(|rowid| same(rowid, &named)) {
                return Err("it uses the row's id, which is not known before an insert".to_owned());
            }
        }
        let end = text.get(read..).unwrap_or_default().to_owned();
        Ok(Self { parts, end })
    }

    /// The expression in parentheses, with what `column` gives for each column's position.
    pub fn say(&self, column: impl Fn(usize) -> String) -> String {
        let mut said = String::from("(");
        for (before, position) in &self.parts {
            said.push_str(before);
            said.push_str(&column(*position));
        }
        said.push_str(&self.end);
        said.push(')');
        said
    }

    /// The columns that it mentions, by position.
    pub fn columns(&self) -> impl Iterator<Item = usize> {
        self.parts.iter().map(|(_, position)| *position)
    }
}

/// The position past the type of a CAST, whose AS stands at `i`.
fn past_type(all: &[Token<'_>], mut i: usize) -> usize {
    let mut depth = 0_usize;
    while let Some(token) = all.get(i) {
        if token.is_sign("(") {
            depth += 1;
        } else if token.is_sign(")") {
            match depth.checked_sub(1) {
                Some(less) => depth = less,
                None => return i,
            }
        }
        i += 1;
    }
    i
}

/// The same on one line, without comments, so that it may stand anywhere in another statement.
pub fn one_line(sql: &str) -> String {
    let mut line = String::with_capacity(sql.len());
    let mut end = 0;
    for token in tokens(sql) {
        if token.start > end && !line.is_empty() {
            line.push(' ');
        }
        line.push_str(token.text);
        end = token.end();
    }
    line
}

/// Whether an expression compares values by an operator that would convert them by the columns' affinity.
///
/// `new.column` has no affinity in a trigger, so such a comparison may come out differently there.
pub fn compares(expression: &str) -> bool {
    let all = tokens(expression);
    all.iter().enumerate().any(|(i, token)| {
        let after = |n: usize, word: &str| all.get(i + n).is_some_and(|next| next.is_word(word));
        match token.kind {
            Kind::Sign => matches!(token.text, "=" | "==" | "<" | "<=" | ">" | ">=" | "<>" | "!="),
            Kind::Word if token.is_word("is") => !(after(1, "null") || (after(1, "not") && after(2, "null"))),
            Kind::Word if token.is_word("case") => !after(1, "when"),
            Kind::Word => token.is_word("in") || token.is_word("between"),
            _ => false,
        }
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing)]

    use super::*;

    const COLUMNS: [&str; 5] = ["id", "email", "text", "nocase", "two words"];

    fn of_new(expression: &str) -> Result<String, String> {
        Ok(Expression::read(expression, &COLUMNS)?.say(|position| format!("new.\"{}\"", COLUMNS[position])))
    }

    #[test]
    fn every_column_is_said_of_the_new_row_and_nothing_else() {
        for (expression, said) in [
            ("lower(email)", "(lower(new.\"email\"))"),
            ("LOWER( Email )", "(LOWER( new.\"email\" ))"),
            ("email || [two words]", "(new.\"email\" || new.\"two words\")"),
            ("main.\"t\".email || t.\"id\"", "(new.\"email\" || new.\"id\")"),
            ("cast(id as text)", "(cast(new.\"id\" as text))"),
            (
                "cast(text as varchar(10)) || text",
                "(cast(new.\"text\" as varchar(10)) || new.\"text\")",
            ),
            ("text collate nocase", "(new.\"text\" collate nocase)"),
            ("nocase -- email\n + text('email')", "(new.\"nocase\" + text('email'))"),
            ("\"no column\" || x'00'", "(\"no column\" || x'00')"),
            ("\"text\"(1)", "(\"text\"(1))"),
        ] {
            assert_eq!(of_new(expression).as_deref(), Ok(said));
        }
    }

    #[test]
    fn what_cannot_be_told_is_an_error() {
        let read = |expression, columns: &[&str]| Expression::read(expression, columns).map(|_| ());
        assert!(read("rowid % 2", &COLUMNS).is_err());
        assert!(read("a like b", &["like", "a", "b"]).is_err());
        assert!(read("a like \"like\"", &["like", "a"]).is_err());
        assert!(read("a || \"like\"", &["like", "a"]).is_ok());
    }

    #[test]
    fn comparisons_are_found() {
        for yes in [
            "a = 1",
            "a is 1",
            "a in (1)",
            "a between 1 and 2",
            "case a when 1 then 2 end",
            "a is not b",
            "a<>b",
        ] {
            assert!(compares(yes), "{yes}");
        }
        for no in [
            "a is null",
            "a is not null",
            "a notnull",
            "case when a then b end",
            "a -> '$.x'",
            "a << 1",
            "lower(a)",
        ] {
            assert!(!compares(no), "{no}");
        }
    }
}
