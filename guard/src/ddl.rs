//! What SQLite's pragmas do not tell of a table, read from the CREATE statements whose words SQLite keeps.

use super::expression::one_line;
use super::sql::{Token, literal, same, tokens};

/// What a CREATE INDEX says in its own words.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct IndexText<'a> {
    /// The indexed columns and expressions, without their order and collation.
    pub terms: Vec<&'a str>,
    /// What stands after WHERE.
    pub predicate: Option<&'a str>,
}

/// Reads a CREATE INDEX.
pub fn index_text(sql: &str) -> Option<IndexText<'_>> {
    let all = tokens(sql);
    let open = all.iter().position(|token| token.is_sign("("))?;
    let mut terms = Vec::new();
    let (mut depth, mut first) = (0_usize, open + 1);
    for (i, token) in all.iter().enumerate().skip(open) {
        if token.is_sign("(") {
            depth += 1;
        } else if token.is_sign(")") {
            depth = depth.checked_sub(1)?;
        }
        if depth == 0 || (depth == 1 && token.is_sign(",")) {
            terms.push(term(sql, all.get(first..i)?)?);
            first = i + 1;
        }
        if depth == 0 {
            break;
        }
    }
    let predicate = match all.get(first) {
        None => None,
        Some(word) if word.is_word("where") => Some(sql.get(word.end()..all.last()?.end())?.trim()),
        Some(_) => return None,
    };
    Some(IndexText { terms, predicate })
}

/// The text of one indexed term.
fn term<'a>(sql: &'a str, mut part: &[Token<'_>]) -> Option<&'a str> {
    while let [rest @ .., last] = part {
        part = match rest {
            [before @ .., collate] if collate.is_word("collate") => before,
            _ if last.is_word("asc") || last.is_word("desc") => rest,
            _ => break,
        };
    }
    sql.get(part.first()?.start..part.last()?.end())
}

/// A default as an expression, or none for NULL. SQLite takes a bare or quoted word after DEFAULT for a string.
pub fn default_expression(written: &str) -> Option<String> {
    let words = tokens(written);
    let [word] = words.as_slice() else {
        return Some(format!("({})", one_line(written)));
    };
    if word.is_word("null") {
        return None;
    }
    let value = ["true", "false", "current_date", "current_time", "current_timestamp"];
    match word.identifier() {
        Some(text) if !value.iter().any(|value| word.is_word(value)) => Some(literal(&text)),
        _ => Some(word.text.to_owned()),
    }
}

/// Whether a CREATE TABLE ends with this option: STRICT, or WITHOUT (ROWID).
pub fn has_option(words: &[Token<'_>], option: &str) -> bool {
    words
        .iter()
        .rev()
        .take_while(|token| !token.is_sign(")"))
        .any(|token| token.is_word(option))
}

/// Whether a generated column of a CREATE TABLE mentions this column: `… AS (…)`.
pub fn generated_from(words: &[Token<'_>], column: &str) -> bool {
    let mut depth = None::<usize>;
    for pair in words.windows(2) {
        let [before, token] = pair else { continue };
        depth = match depth {
            None if token.is_sign("(") && before.is_word("as") => Some(1),
            None => None,
            Some(_) if token.identifier().is_some_and(|name| same(&name, column)) => return true,
            Some(depth) if token.is_sign("(") => Some(depth + 1),
            Some(depth) if token.is_sign(")") => (depth > 1).then(|| depth - 1),
            inside => inside,
        };
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_is_read_in_its_own_words() {
        let read = index_text(
            "CREATE UNIQUE INDEX \"a(b\" ON t(lower(email) COLLATE nocase DESC, id /* , */ asc, coalesce(a, 'x,)')) WHERE a > 1 AND (b)",
        );
        assert_eq!(
            read,
            Some(IndexText {
                terms: vec!["lower(email)", "id", "coalesce(a, 'x,)')"],
                predicate: Some("a > 1 AND (b)")
            })
        );
        assert_eq!(
            index_text("CREATE UNIQUE INDEX i ON t(a)").map(|read| read.predicate),
            Some(None)
        );
        assert_eq!(index_text("CREATE UNIQUE INDEX i ON t(a"), None);
        assert_eq!(index_text("CREATE UNIQUE INDEX i ON t"), None);
    }

    #[test]
    fn a_default_is_said_as_an_expression() {
        for (written, said) in [
            ("''", Some("''")),
            ("0", Some("0")),
            ("-1", Some("(-1)")),
            ("NULL", None),
            ("abc", Some("'abc'")),
            ("\"it's\"", Some("'it''s'")),
            ("TRUE", Some("TRUE")),
            ("CURRENT_TIMESTAMP", Some("CURRENT_TIMESTAMP")),
            (
                "lower(hex(randomblob(16))) -- an id",
                Some("(lower(hex(randomblob(16))))"),
            ),
        ] {
            assert_eq!(default_expression(written).as_deref(), said, "{written}");
        }
    }

    #[test]
    fn the_options_of_a_table_stand_behind_its_columns() {
        let words = tokens("CREATE TABLE t(\"strict\" text, without int) STRICT, WITHOUT ROWID -- )");
        assert!(has_option(&words, "strict") && has_option(&words, "without"));
        let words = tokens("CREATE TABLE t(\"strict\" text, without int)");
        assert!(!has_option(&words, "strict") && !has_option(&words, "without"));
    }

    #[test]
    fn what_a_generated_column_is_made_of_is_found() {
        let words = tokens("CREATE TABLE t(id integer primary key, a text, b AS (lower(a)), c AS (a || (id)) STORED)");
        assert!(generated_from(&words, "ID"));
        assert!(!generated_from(&words, "c"));
        assert!(!generated_from(
            &tokens("CREATE TABLE t(id integer primary key, a AS (lower(x)), b CHECK (id))"),
            "id"
        ));
    }
}
