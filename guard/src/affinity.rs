//! What a column does to the digits of a fence.
//!
//! A padded fence stays text in a column of TEXT or BLOB affinity. Any other affinity turns its 40 digits into a REAL of
//! about 16, after which two different fences compare equal. This file is the one place for that rule, which is SQLite's
//! own (five substrings of the declared type, tried in order).

/// The affinity of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Affinity {
    /// INT, INTEGER, BIGINT, …
    Integer,
    /// CHAR, VARCHAR, CLOB, TEXT
    Text,
    /// BLOB, or no type at all; ANY in a STRICT table
    Blob,
    /// REAL, FLOAT, DOUBLE
    Real,
    /// Everything else: NUMERIC, DECIMAL, BOOLEAN, DATETIME, STRING, JSON, ANY, invented types
    Numeric,
}

impl Affinity {
    /// The affinity of a declared type, in a table that is STRICT or not.
    pub fn of(declared: &str, strict: bool) -> Self {
        let declared = declared.to_ascii_uppercase();
        if strict && declared == "ANY" {
            return Self::Blob;
        }
        let has = |part: &str| declared.contains(part);
        if has("INT") {
            Self::Integer
        } else if has("CHAR") || has("CLOB") || has("TEXT") {
            Self::Text
        } else if has("BLOB") || declared.is_empty() {
            Self::Blob
        } else if has("REAL") || has("FLOA") || has("DOUB") {
            Self::Real
        } else {
            Self::Numeric
        }
    }

    /// Whether text of digits stays text.
    pub fn keeps_digits(self) -> bool {
        matches!(self, Self::Text | Self::Blob)
    }

    /// Its name, which is also a type that has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Integer => "INTEGER",
            Self::Text => "TEXT",
            Self::Blob => "BLOB",
            Self::Real => "REAL",
            Self::Numeric => "NUMERIC",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_declared_type_has_the_affinity_that_sqlite_gives_it() {
        for (declared, affinity) in [
            ("TEXT", Affinity::Text),
            ("varchar(40)", Affinity::Text),
            ("CHAR(40)", Affinity::Text),
            ("CLOB", Affinity::Text),
            ("", Affinity::Blob),
            ("BLOB", Affinity::Blob),
            ("BIGINT", Affinity::Integer),
            ("CHARINT", Affinity::Integer),
            ("FLOATING POINT", Affinity::Integer),
            ("DOUBLE PRECISION", Affinity::Real),
            ("STRING", Affinity::Numeric),
            ("DECIMAL(40,0)", Affinity::Numeric),
            ("ANY", Affinity::Numeric),
            ("FENCE", Affinity::Numeric),
        ] {
            assert_eq!(Affinity::of(declared, false), affinity, "{declared}");
        }
        assert_eq!(Affinity::of("any", true), Affinity::Blob);
    }
}
