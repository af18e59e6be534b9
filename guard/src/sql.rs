//! The small part of SQL's grammar that guards need: names, literals, tokens.
//!
//! [`name`] and [`literal`] write; [`tokens`] reads. The reader knows what SQLite's own tokenizer knows of words,
//! quotes, numbers and comments, and nothing of the grammar above them. It never fails: what it does not know is an
//! operator of one character.

/// An identifier, quoted, so that any name is a name: `"my ""own"" table"`.
pub fn name(identifier: &str) -> String {
    format!("\"{}\"", identifier.replace('"', "\"\""))
}

/// A text literal: `'it''s'`.
pub fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Whether two identifiers are the same to SQLite, which folds the case of ASCII alone.
pub fn same(a: &str, b: &str) -> bool {
    a.eq_ignore_ascii_case(b)
}

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A bare word: a keyword or an identifier.
    Word,
    /// An identifier in `"`, `` ` `` or `[`.
    Quoted,
    /// A string, a blob, a number or a parameter.
    Value,
    /// Punctuation.
    Sign,
}

/// One token and where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token<'a> {
    /// What it is.
    pub kind: Kind,
    /// Its text, as written.
    pub text: &'a str,
    /// The offset of its first byte.
    pub start: usize,
}

impl Token<'_> {
    /// The offset past its last byte.
    pub fn end(&self) -> usize {
        self.start + self.text.len()
    }

    /// Whether it is this bare word, in any case.
    pub fn is_word(&self, word: &str) -> bool {
        self.kind == Kind::Word && same(self.text, word)
    }

    /// Whether it is this sign.
    pub fn is_sign(&self, sign: &str) -> bool {
        self.kind == Kind::Sign && self.text == sign
    }

    /// The name that it may stand for, without its quotes.
    pub fn identifier(&self) -> Option<String> {
        match self.kind {
            Kind::Word => Some(self.text.to_owned()),
            Kind::Quoted => {
                let close = match self.text.chars().next()? {
                    '[' => "]",
                    '`' => "`",
                    _ => "\"",
                };
                let inner = self.text.get(1..)?;
                let inner = inner.strip_suffix(close).unwrap_or(inner);
                Some(match close {
                    "]" => inner.to_owned(),
                    quote => inner.replace(&quote.repeat(2), quote),
                })
            }
            Kind::Value | Kind::Sign => None,
        }
    }
}

/// The signs of more than one character, longest first.
const SIGNS: [&str; 10] = ["->>", "->", "||", "<<", ">>", "<=", ">=", "<>", "==", "!="];

/// The tokens of a text, without its spaces and comments.
pub fn tokens(sql: &str) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    let mut start = 0;
    while let Some(rest) = sql.get(start..).filter(|rest| !rest.is_empty()) {
        let (kind, length) = first(rest);
        if let (Some(kind), Some(text)) = (kind, rest.get(..length)) {
            found.push(Token { kind, text, start });
        }
        start += length.max(1);
    }
    found
}

/// The kind (none for space and comments) and the length of what stands first.
fn first(rest: &str) -> (Option<Kind>, usize) {
    let bytes = rest.as_bytes();
    let at = |i: usize| bytes.get(i).copied().unwrap_or(0);
    let to = |mark: &str| rest.find(mark).map_or(rest.len(), |i| i + mark.len());
    let run = |from: usize, part: fn(u8) -> bool| from + bytes.iter().skip(from).take_while(|&&b| part(b)).count();
    match (at(0), at(1)) {
        (b' ' | b'\t' | b'\n' | b'\r' | b'\x0c', _) => (None, 1),
        (b'-', b'-') => (None, to("\n")),
        (b'/', b'*') => (
            None,
            2 + rest.get(2..).map_or(0, |r| r.find("*/").map_or(r.len(), |i| i + 2)),
        ),
        (b'\'', _) => (Some(Kind::Value), quoted(bytes, b'\'')),
        (b'x' | b'X', b'\'') => (Some(Kind::Value), 1 + quoted(bytes.get(1..).unwrap_or(&[]), b'\'')),
        (quote @ (b'"' | b'`'), _) => (Some(Kind::Quoted), quoted(bytes, quote)),
        (b'[', _) => (Some(Kind::Quoted), to("]")),
        (b'0'..=b'9', _) | (b'.', b'0'..=b'9') => (Some(Kind::Value), number(bytes)),
        (b'?' | b':' | b'@' | b'#', _) => (Some(Kind::Value), run(1, in_word)),
        (first, _) if in_word(first) => (Some(Kind::Word), run(1, in_word)),
        _ => match SIGNS.iter().find(|sign| rest.starts_with(*sign)) {
            Some(sign) => (Some(Kind::Sign), sign.len()),
            None => (Some(Kind::Sign), 1),
        },
    }
}

/// A byte that a bare word is made of. (`$` starts a parameter; inside a word it belongs to it.)
fn in_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}

/// The length of a quoted token, in which the quote stands for itself when doubled.
fn quoted(bytes: &[u8], quote: u8) -> usize {
    let mut i = 1;
    while let Some(&byte) = bytes.get(i) {
        i += 1;
        if byte == quote {
            if bytes.get(i) != Some(&quote) {
                return i;
            }
            i += 1;
        }
    }
    bytes.len()
}

/// The length of a number: `12`, `1.5e-3`, `0x1f`, `1_000`.
fn number(bytes: &[u8]) -> usize {
    let hex = matches!(bytes, [b'0', b'x' | b'X', ..]);
    let mut i = 0;
    while let Some(&byte) = bytes.get(i) {
        let signed = !hex && matches!(byte, b'e' | b'E') && matches!(bytes.get(i + 1), Some(b'+' | b'-'));
        if !(in_word(byte) || byte == b'.') {
            break;
        }
        i += if signed { 2 } else { 1 };
    }
    i
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identifier(sql: &str) -> Option<String> {
        tokens(sql).first().and_then(Token::identifier)
    }

    fn texts(sql: &str) -> Vec<&str> {
        tokens(sql).iter().map(|token| token.text).collect()
    }

    #[test]
    fn a_text_falls_into_the_tokens_that_sqlite_sees() {
        assert_eq!(
            texts("a.\"b\"\"c\" -- no\n || [d e]/* 'x' */<>x'6a' `f``g` 'it''s' 1.5e-3 .5 0x1e-1 café ?1 ->> '$'"),
            [
                "a",
                ".",
                "\"b\"\"c\"",
                "||",
                "[d e]",
                "<>",
                "x'6a'",
                "`f``g`",
                "'it''s'",
                "1.5e-3",
                ".5",
                "0x1e",
                "-",
                "1",
                "café",
                "?1",
                "->>",
                "'$'"
            ]
        );
    }

    #[test]
    fn what_is_left_open_ends_with_the_text() {
        for sql in ["'a", "\"a", "[a", "/* a", "-- a", "x'", "é'", "'"] {
            let _ = tokens(sql);
        }
        assert_eq!(texts("a /*"), ["a"]);
    }

    #[test]
    fn a_name_comes_back_from_its_quotes() {
        for plain in ["a", "two words", "with \"quotes\"", "select", "日本", "", "a]b", "`"] {
            assert_eq!(identifier(&name(plain)).as_deref(), Some(plain));
        }
        assert_eq!(identifier("[a b]").as_deref(), Some("a b"));
        assert_eq!(identifier("`a``b`").as_deref(), Some("a`b"));
        assert_eq!(identifier("'a'"), None);
    }
}
