//! The arguments that all acquires share: `ttl_ms`, `wait_ms` and the options.
//!
//! The options are one JSON text with any of these names:
//!
//! | name | value | for |
//! |---|---|---|
//! | `delay_ms` | an integer, 0 to 31536000000 | leases: how long the key stays closed after an end without release |
//! | `bound` | true or false | leases and permits: whether it ends when this process ends |
//!
//! Another name, one name twice, another type or anything that is no JSON object is an error that names it, and nothing is
//! acquired.

use std::fmt;

use fence_core::{AcquireOptions, Delay, Ttl, Wait};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value as Json;

use crate::answer::SqlError;
use crate::value::{Args, Value};

/// The longest text of options that is read, in bytes: far more than they need.
const LONGEST: usize = 65_536;

/// Whose options they are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    Lease,
    Permit,
}

/// Reads `ttl_ms`, `wait_ms` and the options from the argument at `first` on. What was left out has its default.
pub(super) fn read(args: &Args<'_>, first: usize, of: Of) -> Result<AcquireOptions, SqlError> {
    let mut options = AcquireOptions::default();
    if let Some(ttl) = ttl(args, first)? {
        options.ttl = ttl;
    }
    if args.len() > first + 1 {
        let wait = args.integer(first + 1, Wait::ARGUMENT, Wait::MIN.get()..=Wait::MAX.get())?;
        options.wait = Wait::new(wait)?;
    }
    if args.len() > first + 2 {
        read_json(args, first + 2, of, &mut options)?;
    }
    Ok(options)
}

/// Reads `ttl_ms`; nothing if it was left out.
pub(super) fn ttl(args: &Args<'_>, index: usize) -> Result<Option<Ttl>, SqlError> {
    if args.len() <= index {
        return Ok(None);
    }
    let ttl = args.integer(index, Ttl::ARGUMENT, Ttl::MIN.get()..=Ttl::MAX.get())?;
    Ok(Some(Ttl::new(ttl)?))
}

fn read_json(args: &Args<'_>, index: usize, of: Of, options: &mut AcquireOptions) -> Result<(), SqlError> {
    let value = args.value(index)?;
    let refuse = |accepted: &str| args.refused("not options", "options", value, accepted);
    let parsed = match value {
        Value::Text(text) if text.len() <= LONGEST => serde_json::from_slice::<Pairs>(text).ok(),
        _ => None,
    };
    let Some(Pairs(pairs)) = parsed else {
        return Err(refuse("give a JSON object such as '{\"bound\":true}'"));
    };
    for (place, (name, value)) in pairs.iter().enumerate() {
        match (name.as_str(), of) {
            ("bound", _) => {
                options.bound = value.as_bool().ok_or_else(|| refuse("\"bound\" takes true or false"))?;
            }
            ("delay_ms", Of::Lease) => {
                options.delay = value
                    .as_i64()
                    .and_then(|delay| Delay::new(delay).ok())
                    .ok_or_else(|| refuse(&format!("\"delay_ms\" takes an integer, {}", Delay::ACCEPTS)))?;
            }
            ("delay_ms", Of::Permit) => {
                return Err(refuse("a permit has no \"delay_ms\"; the name it takes is \"bound\""));
            }
            (other, _) => {
                let shown = fence_core::shown::text(other.as_bytes());
                let known = match of {
                    Of::Lease => "\"delay_ms\" and \"bound\"",
                    Of::Permit => "\"bound\"",
                };
                return Err(refuse(&format!("{shown} is no option; the names are {known}")));
            }
        }
        if pairs.iter().take(place).any(|(before, _)| before == name) {
            return Err(refuse(&format!("\"{name}\" is there twice; give it once")));
        }
    }
    Ok(())
}

/// The names of a JSON object with their values, as they stand there. serde_json's own map keeps one of two with the same
/// name, and does not say so.
struct Pairs(Vec<(String, Json)>);

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: Deserializer<'de>>(object: D) -> Result<Self, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = Pairs;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Pairs, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = object.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }

        object.deserialize_map(Reader)
    }
}
