//! Which cluster is meant, and which keys of it: `etcd://[user[:password]@]host[:port][,host[:port]…][/prefix]`.
//!
//! * `etcds://` instead of `etcd://` speaks TLS; which certificates, see `tls.rs`.
//! * Several hosts are members of one cluster, in any order. A host is a name, an IPv4 address, or an IPv6 address in
//!   brackets; its port is 2379 if none is given.
//! * All keys of the store begin with the prefix and a slash; without one the prefix is `fence`. Two prefixes are two
//!   stores.
//! * What is not a letter, a digit or one of `-._~` in user, password and prefix is percent-encoded (`%40` for `@`). The
//!   prefix may have slashes inside.
//! * A password that is to stay out of SQL and of FENCE_STORE stands in `FENCE_ETCD_PASSWORD`.
//!
//! The password is shown nowhere: not by [`Location::shown`], not by `Debug`, not in an error.

use std::fmt;
use std::path::PathBuf;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use crate::error::{Error, Result};

/// The environment variable with the password of the user that a location names without one.
pub(crate) const PASSWORD: &str = "FENCE_ETCD_PASSWORD";

const DEFAULT_PORT: u16 = 2379;
const DEFAULT_PREFIX: &str = "fence";
/// What is shown percent-encoded.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
const ENCODED_IN_PREFIX: &AsciiSet = &ENCODED.remove(b'/');

/// A cluster, the user, and the prefix of the store's keys.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Location {
    tls: bool,
    /// Each as `host:port`.
    endpoints: Vec<String>,
    user: Option<User>,
    prefix: String,
    shown: String,
}

#[derive(Clone, PartialEq, Eq)]
pub(super) struct User {
    pub(super) name: String,
    pub(super) password: String,
}

impl Location {
    /// Reads a location.
    ///
    /// # Errors
    ///
    /// [`Error::Path`], which says what is wrong with it.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let refuse = |reason| Error::Path {
            path: without_password(text),
            reason,
        };
        Self::read(text, std::env::var(PASSWORD).ok()).map_err(refuse)
    }

    fn read(text: &str, password: Option<String>) -> std::result::Result<Self, &'static str> {
        let (tls, rest) = scheme(text).ok_or("it begins with neither etcd:// nor etcds://: write one of them")?;
        if rest.contains(['?', '#']) {
            return Err("it has parameters: a location takes none (write ? as %3F and # as %23)");
        }
        let (authority, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        if prefix.contains('@') {
            return Err("it has an @ after a slash: write / as %2F in a password, and @ as %40 in a prefix");
        }
        let (user, hosts) = match authority.rsplit_once('@') {
            Some((user, hosts)) => (Some(read_user(user, password)?), hosts),
            None => (None, authority),
        };
        let endpoints = hosts
            .split(',')
            .map(read_endpoint)
            .collect::<std::result::Result<Vec<_>, _>>()?;
        let prefix = decoded(prefix.trim_matches('/'))?;
        let prefix = if prefix.is_empty() {
            DEFAULT_PREFIX.to_owned()
        } else {
            prefix
        };
        if prefix.contains('\0') {
            return Err("its prefix holds a NUL: leave it out");
        }
        let shown = format!(
            "{}://{}{}/{}",
            if tls { "etcds" } else { "etcd" },
            user.as_ref().map_or(String::new(), |user| format!(
                "{}@",
                utf8_percent_encode(&user.name, ENCODED)
            )),
            endpoints.join(","),
            utf8_percent_encode(&prefix, ENCODED_IN_PREFIX),
        );
        Ok(Self {
            tls,
            endpoints,
            user,
            prefix,
            shown,
        })
    }

    /// With what the store's keys begin; without the slash that follows it.
    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The location with nothing left out but the password: what is the same store is the same text.
    pub(crate) fn shown(&self) -> &str {
        &self.shown
    }

    pub(super) fn tls(&self) -> bool {
        self.tls
    }

    /// Where each member is found, as `http://host:port`.
    pub(super) fn urls(&self) -> Vec<String> {
        let scheme = if self.tls { "https" } else { "http" };
        self.endpoints
            .iter()
            .map(|endpoint| format!("{scheme}://{endpoint}"))
            .collect()
    }

    pub(super) fn user(&self) -> Option<&User> {
        self.user.as_ref()
    }
}

impl fmt::Debug for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Location").field(&self.shown).finish()
    }
}

/// Whether it speaks TLS, and what follows the scheme.
fn scheme(text: &str) -> Option<(bool, &str)> {
    let plain = text.strip_prefix("etcd://").map(|rest| (false, rest));
    plain.or_else(|| text.strip_prefix("etcds://").map(|rest| (true, rest)))
}

/// What may be shown of a text that could not be read. An @ may stand anywhere in it.
fn without_password(text: &str) -> PathBuf {
    let shown = match (text.split_once("://"), text.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, rest))) => format!("{scheme}://…@{rest}"),
        _ => text.to_owned(),
    };
    PathBuf::from(shown)
}

fn read_user(text: &str, password: Option<String>) -> std::result::Result<User, &'static str> {
    let (name, given) = match text.split_once(':') {
        Some((name, password)) => (name, Some(decoded(password)?)),
        None => (text, None),
    };
    let user = User {
        name: decoded(name)?,
        password: given
            .or(password)
            .ok_or("it names a user without a password: set FENCE_ETCD_PASSWORD, or write user:password@")?,
    };
    if user.name.is_empty() {
        return Err("its user has no name: write user:password@, or leave out the @");
    }
    Ok(user)
}

fn read_endpoint(text: &str) -> std::result::Result<String, &'static str> {
    const PORT: &str = "one of its ports is no number from 1 to 65535: write host:port";
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (address, after) = rest
                .split_once(']')
                .ok_or("it has a [ without its ]: write [address]:port")?;
            let address = address.parse::<std::net::Ipv6Addr>();
            let address = address.map_err(|_| "what stands in [ ] is no IPv6 address: write one, or leave out [ ]")?;
            (
                format!("[{address}]"),
                after.strip_prefix(':').or((!after.is_empty()).then_some("")),
            )
        }
        None => match text.split_once(':') {
            Some((host, port)) => (host.to_ascii_lowercase(), Some(port)),
            None => (text.to_ascii_lowercase(), None),
        },
    };
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    if host.is_empty() {
        return Err("one of its hosts has no name: write host:port,host:port");
    }
    if !host.starts_with('[') && !host.chars().all(is_name) {
        return Err("one of its hosts is no name: write letters, digits, - and . (an IPv6 address stands in [ ])");
    }
    let port = match port {
        None => DEFAULT_PORT,
        Some(port) if port.bytes().all(|byte| byte.is_ascii_digit()) => match port.parse() {
            Ok(0) | Err(_) => return Err(PORT),
            Ok(port) => port,
        },
        Some(_) => return Err(PORT),
    };
    Ok(format!("{host}:{port}"))
}

fn decoded(text: &str) -> std::result::Result<String, &'static str> {
    let text = percent_decode_str(text).decode_utf8();
    Ok(text
        .map_err(|_| "what it percent-encodes is no UTF-8: encode the bytes of UTF-8")?
        .into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_says_where_who_and_under_which_prefix() -> std::result::Result<(), &'static str> {
        let location = Location::read("etcd://a,B.example:12379,[::1]:80,10.0.0.7/jobs/nightly/", None)?;
        assert_eq!(
            location.urls(),
            [
                "http://a:2379",
                "http://b.example:12379",
                "http://[::1]:80",
                "http://10.0.0.7:2379"
            ]
        );
        assert_eq!(location.prefix(), "jobs/nightly");
        assert_eq!(
            location.shown(),
            "etcd://a:2379,b.example:12379,[::1]:80,10.0.0.7:2379/jobs/nightly"
        );
        assert!(!location.tls() && location.user().is_none());

        let secret = Location::read("etcds://ro%40ot:pass%2Fw%3Ard@a/%C3%A9", None)?;
        assert_eq!(
            secret.user().map(|user| (&*user.name, &*user.password)),
            Some(("ro@ot", "pass/w:rd"))
        );
        assert_eq!(secret.urls(), ["https://a:2379"]);
        assert_eq!(secret.prefix(), "é");
        assert_eq!(secret.shown(), "etcds://ro%40ot@a:2379/%C3%A9");
        assert_eq!(format!("{secret:?}"), "Location(\"etcds://ro%40ot@a:2379/%C3%A9\")");

        // The password may stand in the environment, and what is shown can be read again.
        let again = Location::read(secret.shown(), Some("pass/w:rd".to_owned()))?;
        assert_eq!((again.shown(), again.urls()), (secret.shown(), secret.urls()));
        assert_eq!(again.user().map(|user| &*user.password), Some("pass/w:rd"));

        for spelling in ["etcd://a", "etcd://a/", "etcd://A:2379/fence", "etcd://a//fence/"] {
            assert_eq!(
                Location::read(spelling, None)?.shown(),
                "etcd://a:2379/fence",
                "{spelling}"
            );
        }
        Ok(())
    }

    #[test]
    fn what_names_no_cluster_is_refused_with_its_reason_and_without_its_password() {
        for (spelling, reason) in [
            ("etcd://", "no name"),
            ("etcd://a,,b/", "no name"),
            ("etcd://a:0/", "ports"),
            ("etcd://a:65536/", "ports"),
            ("etcd://a:+1/", "ports"),
            ("etcd://a b/", "is no name"),
            ("etcd://::1/", "no name"),
            ("etcd://fe80::1/", "ports"),
            ("etcd://[::1/", "without its ]"),
            ("etcd://[::x]/", "IPv6"),
            ("etcd://[::1]9/", "ports"),
            ("etcd://root:hidden@a?b", "parameters"),
            ("etcd://root:hid/den@a", "%2F"),
            ("etcd://:hidden@a", "no name"),
            ("etcd://root@a", "FENCE_ETCD_PASSWORD"),
            ("etcd://root:%ffhidden@a", "UTF-8"),
            ("etcd://a/%00", "NUL"),
            ("http://root:hidden@a", "begins"),
        ] {
            let message = Location::parse(spelling).map_err(|error| error.to_string());
            assert!(
                matches!(&message, Err(text) if text.contains(reason) && !text.contains("hid")),
                "{spelling:?}: {message:?}"
            );
        }
    }
}
