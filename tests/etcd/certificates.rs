//! Certificates for one cluster: an authority, the members', the clients'.

use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose};

/// Files with certificates that belong together, removed with the value. All are valid for 127.0.0.1 and localhost.
#[derive(Debug)]
pub struct Certificates {
    folder: tempfile::TempDir,
}

impl Certificates {
    /// Makes new ones.
    ///
    /// # Panics
    ///
    /// When they cannot be made or written.
    pub fn new() -> Self {
        let folder = crate::folder();
        let write = |name: &str, pem: String| std::fs::write(folder.path().join(name), pem).expect("a file");

        let mut authority = CertificateParams::new(Vec::new()).expect("no names");
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate().expect("a key");
        let certificate = authority.self_signed(&key).expect("a certificate");
        write("ca.pem", certificate.pem());
        let issuer = Issuer::new(authority, key);

        for name in ["server", "client"] {
            let names = ["127.0.0.1", "localhost"].map(str::to_owned);
            let mut params = CertificateParams::new(names).expect("names");
            // A member's gateway is a client of the member.
            params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
            let key = KeyPair::generate().expect("a key");
            let certificate = params.signed_by(&key, &issuer).expect("a certificate");
            write(&format!("{name}.pem"), certificate.pem());
            write(&format!("{name}-key.pem"), key.serialize_pem());
        }
        Self { folder }
    }

    /// The authority's.
    pub fn ca(&self) -> PathBuf {
        self.file("ca.pem")
    }

    /// The members'.
    pub fn server(&self) -> PathBuf {
        self.file("server.pem")
    }

    /// The key to it.
    pub fn server_key(&self) -> PathBuf {
        self.file("server-key.pem")
    }

    /// The clients'.
    pub fn client(&self) -> PathBuf {
        self.file("client.pem")
    }

    /// The key to it.
    pub fn client_key(&self) -> PathBuf {
        self.file("client-key.pem")
    }

    /// What a process needs in its environment to be such a client.
    pub fn environment(&self) -> [(&'static str, PathBuf); 3] {
        [
            ("FENCE_ETCD_CACERT", self.ca()),
            ("FENCE_ETCD_CERT", self.client()),
            ("FENCE_ETCD_KEY", self.client_key()),
        ]
    }

    fn file(&self, name: &str) -> PathBuf {
        let folder: &Path = self.folder.path();
        folder.join(name)
    }
}

impl Default for Certificates {
    fn default() -> Self {
        Self::new()
    }
}
