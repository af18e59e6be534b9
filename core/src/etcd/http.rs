//! One request to one member: JSON there, JSON back.
//!
//! What matters of a failure is whether the member can have acted on the request ([`Failed`]). It can not if no connection
//! came about or the request was not sent to its end, for a request without its end is not understood. Everything later
//! is uncertain. The agent does not tell the two apart, so the transport below marks the first kind itself.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConfig;
use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{Buffers, ConnectionDetails, Connector, NextTimeout, TcpConnector, Transport};

use super::patience::{Patient, Stopped};
use super::resolve::Remembering;
use super::tls;

/// The size of a connection's buffers, in bytes. A grant fits, longer texts pass in parts.
pub(super) const BUFFER: usize = 16 * 1024;
/// No answer is larger, in bytes. A range of all leases may be long.
const LARGEST_ANSWER: u64 = 256 * 1024 * 1024;

/// What came of a request that was not answered, in words.
#[derive(Debug)]
pub(super) enum Failed {
    /// The member cannot have acted on it.
    NotSent(String),
    /// The member may have acted on it, or still do so.
    Lost(String),
    /// The thread was told to stop waiting, see [`while_asking`](super::patience::while_asking). It may have acted.
    Stopped,
}

/// Connections to the members of one cluster.
#[derive(Debug)]
pub(super) struct Http {
    agent: ureq::Agent,
}

/// An answer that has no end: line by line.
pub(super) struct Stream {
    body: ureq::BodyReader<'static>,
    read: Vec<u8>,
}

impl Http {
    pub(super) fn new(tls: Option<Arc<ClientConfig>>) -> Self {
        let config = Config::builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            // The environment's proxy is for the web.
            .proxy(None)
            .user_agent(concat!("sqlite-fence/", env!("CARGO_PKG_VERSION")))
            .input_buffer_size(BUFFER)
            .output_buffer_size(BUFFER)
            .build();
        let connector = Line {
            tcp: TcpConnector::default(),
            tls,
        };
        Self {
            agent: ureq::Agent::with_parts(config, connector, Marking(Remembering::default())),
        }
    }

    /// Sends `body` to `url` and waits for the whole answer, for at most so long: the status and what it says.
    pub(super) fn ask(
        &self,
        url: &str,
        token: Option<&str>,
        body: &[u8],
        at_most: Duration,
    ) -> Result<(u16, Vec<u8>), Failed> {
        let request = self.request(url, token).config().timeout_global(Some(at_most)).build();
        let mut response = request.send(body).map_err(|error| failed(error, at_most))?;
        let said = response.body_mut().with_config().limit(LARGEST_ANSWER).read_to_vec();
        let said = said.map_err(|error| failed(error, at_most))?;
        Ok((response.status().as_u16(), said))
    }

    /// Sends `body` to `url`, waits for the answer's beginning for at most so long, and gives its lines as they come.
    pub(super) fn listen(
        &self,
        url: &str,
        token: Option<&str>,
        body: &[u8],
        at_most: Duration,
    ) -> Result<(u16, Stream), Failed> {
        let request = self.request(url, token).config();
        let request = request
            .timeout_resolve(Some(at_most))
            .timeout_connect(Some(at_most))
            .timeout_send_request(Some(at_most))
            .timeout_send_body(Some(at_most))
            .timeout_recv_response(Some(at_most))
            .build();
        let response = request.send(body).map_err(|error| failed(error, at_most))?;
        let status = response.status().as_u16();
        let body = response.into_body().into_reader();
        Ok((status, Stream { body, read: Vec::new() }))
    }

    fn request(&self, url: &str, token: Option<&str>) -> ureq::RequestBuilder<ureq::typestate::WithBody> {
        let request = self
            .agent
            .post(url)
            .header("content-type", "application/json")
            // A member that knows no leader says so at once instead of waiting for one.
            .header("grpc-metadata-hasleader", "true");
        match token {
            Some(token) => request.header("authorization", token),
            None => request,
        }
    }
}

impl Stream {
    /// The next line; nothing at the end. Waits without limit: [`while_asking`](super::patience::while_asking) has one.
    pub(super) fn line(&mut self) -> Result<Option<Vec<u8>>, Failed> {
        use io::Read as _;
        loop {
            if let Some(end) = self.read.iter().position(|&byte| byte == b'\n') {
                let rest = self.read.split_off(end + 1);
                return Ok(Some(std::mem::replace(&mut self.read, rest)));
            }
            let mut more = [0; 4096];
            match self.body.read(&mut more) {
                Ok(0) if self.read.is_empty() => return Ok(None),
                Ok(0) => return Ok(Some(std::mem::take(&mut self.read))),
                Ok(amount) => self.read.extend(more.iter().take(amount)),
                Err(error) => return Err(failed(error.into(), Duration::ZERO)),
            }
        }
    }
}

/// With this begins what is said of a member whose certificate we do not accept, or that does not accept ours.
pub(super) const NO_TRUST: &str = "no trust: ";

/// What an error of the agent means.
fn failed(error: ureq::Error, at_most: Duration) -> Failed {
    let error = match error {
        ureq::Error::Other(inner) => match inner.downcast::<NotSent>() {
            Ok(not_sent) => return Failed::NotSent(words(&not_sent.0, at_most)),
            Err(inner) if inner.is::<Stopped>() => return Failed::Stopped,
            Err(inner) => ureq::Error::Other(inner),
        },
        other => other,
    };
    let words = words(&error, at_most);
    // With TLS 1.3 a member refuses our certificate when the request is on its way; it does not read it then.
    if words.starts_with(NO_TRUST) {
        Failed::NotSent(words)
    } else {
        Failed::Lost(words)
    }
}

fn words(error: &ureq::Error, at_most: Duration) -> String {
    match error {
        ureq::Error::Timeout(_) => format!("no answer within {} ms", at_most.as_millis()),
        ureq::Error::HostNotFound => "there is no host of that name".to_owned(),
        ureq::Error::Io(error) if tls::is_no_trust(error) => format!("{NO_TRUST}{error}"),
        ureq::Error::Io(error) => error.to_string(),
        other => other.to_string(),
    }
}

/// Marks an error that came before the request was sent.
#[derive(Debug)]
struct NotSent(ureq::Error);

impl fmt::Display for NotSent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for NotSent {}

/// An error before the request was sent; but one that was told to stop stays that.
fn not_sent(error: ureq::Error) -> ureq::Error {
    match error {
        ureq::Error::Other(inner) if inner.is::<Stopped>() => ureq::Error::Other(inner),
        other => ureq::Error::Other(Box::new(NotSent(other))),
    }
}

/// A resolver or a transport whose errors are marked where nothing was sent.
#[derive(Debug)]
struct Marking<T>(T);

impl<T: Resolver> Resolver for Marking<T> {
    fn resolve(&self, uri: &Uri, config: &Config, timeout: NextTimeout) -> Result<ResolvedSocketAddrs, ureq::Error> {
        self.0.resolve(uri, config, timeout).map_err(not_sent)
    }
}

impl<T: Transport> Transport for Marking<T> {
    fn buffers(&mut self) -> &mut dyn Buffers {
        self.0.buffers()
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), ureq::Error> {
        self.0.transmit_output(amount, timeout).map_err(not_sent)
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, ureq::Error> {
        self.0.await_input(timeout)
    }

    fn is_open(&mut self) -> bool {
        self.0.is_open()
    }

    fn is_tls(&self) -> bool {
        self.0.is_tls()
    }
}

/// Connects to a member: TCP, patience, TLS where it is asked for, marks.
#[derive(Debug)]
struct Line {
    tcp: TcpConnector,
    tls: Option<Arc<ClientConfig>>,
}

impl Line {
    fn reach(&self, details: &ConnectionDetails<'_>) -> Result<Option<Box<dyn Transport>>, ureq::Error> {
        let Some(tcp) = Connector::<()>::connect(&self.tcp, details, None)? else {
            return Ok(None);
        };
        let tcp = Patient(tcp);
        Ok(Some(match &self.tls {
            Some(config) if details.needs_tls() => Box::new(tls::wrap(config, details, tcp)?),
            _ => Box::new(tcp),
        }))
    }
}

impl Connector for Line {
    type Out = Marking<Box<dyn Transport>>;

    fn connect(&self, details: &ConnectionDetails<'_>, _: Option<()>) -> Result<Option<Self::Out>, ureq::Error> {
        let reached = self.reach(details).map_err(not_sent)?;
        Ok(reached.map(Marking))
    }
}
