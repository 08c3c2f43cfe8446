//! Certificates and connections for tests.

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

use crate::client::{ClientSettings, ClientTls, Verify};
use crate::failure::Failure;
use crate::machine::{ClientMachine, ServerMachine};

/// An authority, as PEM and for issuing.
pub(crate) struct Authority {
    pub(crate) pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self { pem, issuer: Issuer::new(params, key) }
    }

    /// A certificate for these names, and its key.
    pub(crate) fn issue(&self, names: &[&str]) -> (String, String) {
        self.issue_with(names, |_| {})
    }

    pub(crate) fn issue_with(
        &self,
        names: &[&str],
        change: impl FnOnce(&mut CertificateParams),
    ) -> (String, String) {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.distinguished_name.push(DnType::CommonName, "Cora, Inc.");
        params.distinguished_name.push(DnType::OrganizationName, "Ex\u{e4}mple");
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        (certificate.pem(), key.serialize_pem())
    }

    pub(crate) fn roots(&self) -> Vec<rustls::pki_types::CertificateDer<'static>> {
        crate::certificate::read_chain(self.pem.as_bytes()).unwrap()
    }

    /// A client that trusts it.
    pub(crate) fn client(&self, change: impl FnOnce(&mut ClientSettings)) -> ClientTls {
        let verify = Verify::Authorities(self.roots());
        let mut settings = ClientSettings { verify, ..ClientSettings::default() };
        change(&mut settings);
        ClientTls::new(&settings, &[]).unwrap()
    }
}

/// The plaintext that one side has received, and the bytes on their way to it.
#[derive(Default)]
pub(crate) struct End {
    pub(crate) plain: Vec<u8>,
    pub(crate) coming: Vec<u8>,
}

/// Moves bytes between the two until neither has any for the other. `step` bytes at a time.
pub(crate) fn converse(
    server: (&mut ServerMachine, &mut End),
    client: (&mut ClientMachine, &mut End),
    step: usize,
) -> Result<(), (Option<Failure>, Option<Failure>)> {
    let (server, at_server) = server;
    let (client, at_client) = client;
    if client.is_handshaking() && at_client.coming.is_empty() && at_server.coming.is_empty() {
        client.process(&mut [], &mut at_client.plain, &mut at_server.coming).unwrap();
    }
    while !at_server.coming.is_empty() || !at_client.coming.is_empty() {
        let n = at_server.coming.len().min(step);
        let mut bytes: Vec<u8> = at_server.coming.drain(..n).collect();
        let served = server.process(&mut bytes, &mut at_server.plain, &mut at_client.coming);
        let n = at_client.coming.len().min(step);
        let mut bytes: Vec<u8> = at_client.coming.drain(..n).collect();
        let asked = client.process(&mut bytes, &mut at_client.plain, &mut at_server.coming);
        if served.is_err() || asked.is_err() {
            // The alert reaches the client.
            let mut rest = std::mem::take(&mut at_client.coming);
            let late = client.process(&mut rest, &mut at_client.plain, &mut at_server.coming);
            return Err((served.err(), asked.err().or(late.err())));
        }
    }
    Ok(())
}
