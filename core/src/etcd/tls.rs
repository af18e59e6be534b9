//! TLS, for `etcds://`.
//!
//! | variable | names a file with |
//! |---|---|
//! | `FENCE_ETCD_CACERT` | the certificates of those who vouch for the cluster's members (PEM). Needed |
//! | `FENCE_ETCD_CERT` | our own certificate (PEM), where the cluster asks for one |
//! | `FENCE_ETCD_KEY` | its key (PEM) |
//!
//! The variables are this library's own: those of etcdctl may be set for another cluster, and etcdctl, unlike us, trusts
//! every authority that the system trusts. A cluster's own authority is the only one that should vouch for its members.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{AlertDescription, ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use ureq::unversioned::transport::{Buffers, ConnectionDetails, LazyBuffers, NextTimeout, Transport, TransportAdapter};

use super::http::BUFFER;

const CA: &str = "FENCE_ETCD_CACERT";
const CERTIFICATE: &str = "FENCE_ETCD_CERT";
const KEY: &str = "FENCE_ETCD_KEY";

/// The variables' files, read. What is wrong with them, in words, if they cannot be used.
pub(super) fn configuration() -> Result<Arc<ClientConfig>, String> {
    let file = |name| {
        std::env::var_os(name)
            .filter(|path| !path.is_empty())
            .map(PathBuf::from)
    };
    let ca =
        file(CA).ok_or_else(|| format!("etcds:// needs {CA}: set it to the file of the cluster's CA certificate"))?;
    configure(&ca, file(CERTIFICATE).as_deref(), file(KEY).as_deref())
}

pub(super) fn configure(
    ca: &Path,
    certificate: Option<&Path>,
    key: Option<&Path>,
) -> Result<Arc<ClientConfig>, String> {
    let mut roots = RootCertStore::empty();
    for root in certificates(CA, ca)? {
        roots.add(root).map_err(|error| unusable(CA, ca, &error))?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots);
    let config = match (certificate, key) {
        (None, None) => builder.with_no_client_auth(),
        (Some(certificate), Some(key)) => {
            let chain = certificates(CERTIFICATE, certificate)?;
            let key_der = PrivateKeyDer::from_pem_file(key).map_err(|error| unusable(KEY, key, &error))?;
            let config = builder.with_client_auth_cert(chain, key_der);
            config.map_err(|error| unusable(KEY, key, &error))?
        }
        (None, Some(_)) => return Err(format!("{KEY} is set and {CERTIFICATE} is not: set both or neither")),
        (Some(_), None) => return Err(format!("{CERTIFICATE} is set and {KEY} is not: set both or neither")),
    };
    Ok(Arc::new(config))
}

/// All certificates of a file; at least one.
fn certificates(variable: &str, path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let unusable = |error: &dyn std::fmt::Display| unusable(variable, path, error);
    let read = CertificateDer::pem_file_iter(path).map_err(|error| unusable(&error))?;
    let read = read.collect::<Result<Vec<_>, _>>().map_err(|error| unusable(&error))?;
    if read.is_empty() {
        return Err(unusable(&"there is no certificate in it"));
    }
    Ok(read)
}

fn unusable(variable: &str, path: &Path, error: &dyn std::fmt::Display) -> String {
    format!("{variable}={path:?} cannot be used: {error}")
}

/// Whether one of both sides does not accept the other's certificate.
pub(super) fn is_no_trust(error: &std::io::Error) -> bool {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    inner.is_some_and(|error| match error {
        rustls::Error::InvalidCertificate(_) => true,
        rustls::Error::AlertReceived(alert) => matches!(
            alert,
            AlertDescription::NoCertificate
                | AlertDescription::BadCertificate
                | AlertDescription::UnsupportedCertificate
                | AlertDescription::CertificateRevoked
                | AlertDescription::CertificateExpired
                | AlertDescription::CertificateUnknown
                | AlertDescription::CertificateRequired
                | AlertDescription::UnknownCA
                | AlertDescription::AccessDenied
        ),
        _ => false,
    })
}

/// Shakes hands over the transport. The member must prove to be the host that the location names.
pub(super) fn wrap<T: Transport>(
    config: &Arc<ClientConfig>,
    details: &ConnectionDetails<'_>,
    transport: T,
) -> Result<Tls<T>, ureq::Error> {
    let host = details.uri.host().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let name = ServerName::try_from(host).map_err(|_| ureq::Error::Tls("a host's name that TLS does not allow"))?;
    let mut connection = ClientConnection::new(Arc::clone(config), name).map_err(std::io::Error::other)?;
    let mut socket = TransportAdapter::new(transport, Arc::clone(&details.current_time));
    socket.set_timeout(details.timeout);
    connection.complete_io(&mut socket)?;
    Ok(Tls {
        buffers: LazyBuffers::new(BUFFER, BUFFER),
        stream: StreamOwned::new(connection, socket),
    })
}

/// A transport with TLS over another.
pub(super) struct Tls<T: Transport> {
    buffers: LazyBuffers,
    stream: StreamOwned<ClientConnection, TransportAdapter<T>>,
}

impl<T: Transport> std::fmt::Debug for Tls<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Tls").field(self.stream.sock.inner()).finish()
    }
}

impl<T: Transport> Transport for Tls<T> {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), ureq::Error> {
        use std::io::Write as _;
        self.stream.get_mut().set_timeout(timeout);
        let output = self.buffers.output().get(..amount).unwrap_or_default();
        let Err(error) = self.stream.write_all(output) else {
            return Ok(());
        };
        // Why the member has hung up it may have said before.
        let Tls { stream, .. } = self;
        let said = match stream.conn.read_tls(&mut stream.sock) {
            Ok(_) => stream.conn.process_new_packets().err().map(std::io::Error::other),
            Err(_) => None,
        };
        Err(said.filter(is_no_trust).unwrap_or(error).into())
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, ureq::Error> {
        use std::io::Read as _;
        self.stream.get_mut().set_timeout(timeout);
        let amount = self.stream.read(self.buffers.input_append_buf())?;
        self.buffers.input_appended(amount);
        Ok(amount > 0)
    }

    fn is_open(&mut self) -> bool {
        self.stream.get_mut().get_mut().is_open()
    }

    fn is_tls(&self) -> bool {
        true
    }
}
