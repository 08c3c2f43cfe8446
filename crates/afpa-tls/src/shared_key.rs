//! Two sides that have the same key, and accept no other: machines that share a secret. They show it as it is, without a
//! certificate (RFC 7250).
//!
//! It is a key of signatures (Ed25519), so each handshake proves that both sides have it, and the keys of the traffic are
//! agreed upon as with certificates: a secret that is stolen later opens no recording.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{AlwaysResolvesClientRawPublicKeys, Resumption};
use rustls::crypto::aws_lc_rs::sign::any_eddsa_type;
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls13_signature_with_raw_key,
};
use rustls::pki_types::{
    CertificateDer, PrivatePkcs8KeyDer, ServerName, SubjectPublicKeyInfoDer, UnixTime,
};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{AlwaysResolvesServerRawPublicKeys, NoServerSessionStorage};
use rustls::sign::CertifiedKey;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, Error,
    PeerMisbehaved, ServerConfig, SignatureScheme,
};

use crate::client::ClientTls;
use crate::profile::Profile;
use crate::server::{ServerTls, SettingsError};

/// The form of a private key around its 32 bytes (RFC 8410, section 7).
const PKCS8: [u8; 16] = *b"\x30\x2e\x02\x01\x00\x30\x05\x06\x03\x2b\x65\x70\x04\x22\x04\x20";

/// The only protocol that is spoken.
const PROTOCOL: &[u8] = b"http/1.1";

/// A key that both sides of a connection have.
pub struct SharedKey {
    key: Arc<CertifiedKey>,
    provider: Arc<CryptoProvider>,
}

impl SharedKey {
    /// The key of these bytes, the same for each side that has them.
    ///
    /// # Errors
    /// When there is no such key.
    pub fn of_seed(seed: &[u8; 32]) -> Result<Self, SettingsError> {
        let der = PrivatePkcs8KeyDer::from([&PKCS8[..], seed].concat());
        let signer = any_eddsa_type(&der).map_err(wrong)?;
        let public = signer.public_key().ok_or_else(|| "the key has no public part".to_owned())?;
        let shown = CertificateDer::from(public.as_ref().to_vec());
        let key = Arc::new(CertifiedKey::new(vec![shown], signer));
        Ok(Self { key, provider: Arc::new(Profile::Modern.provider(true)) })
    }

    /// The settings of the side that is asked. A client that does not prove that it has the key is turned away in the handshake.
    ///
    /// # Errors
    /// When they cannot be put together.
    pub fn server(&self) -> Result<ServerTls, SettingsError> {
        let mut config = ServerConfig::builder_with_provider(Arc::clone(&self.provider))
            .with_protocol_versions(Profile::Modern.versions())
            .map_err(wrong)?
            .with_client_cert_verifier(self.only())
            .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(self.key())));
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        // Connections are few and long: each has its own handshake.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(ServerTls::of_shared_key(config))
    }

    /// The settings of the side that asks, whatever the name of the other one.
    ///
    /// # Errors
    /// When they cannot be put together.
    pub fn client(&self) -> Result<ClientTls, SettingsError> {
        self.client_that_shows(self.key())
    }

    fn client_that_shows(&self, own: Arc<CertifiedKey>) -> Result<ClientTls, SettingsError> {
        let mut config = ClientConfig::builder_with_provider(Arc::clone(&self.provider))
            .with_protocol_versions(Profile::Modern.versions())
            .map_err(wrong)?
            .dangerous()
            .with_custom_certificate_verifier(self.only())
            .with_client_cert_resolver(Arc::new(AlwaysResolvesClientRawPublicKeys::new(own)));
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        config.resumption = Resumption::disabled();
        Ok(ClientTls::of_shared_key(config))
    }

    fn key(&self) -> Arc<CertifiedKey> {
        Arc::clone(&self.key)
    }

    fn only(&self) -> Arc<Only> {
        let algorithms = self.provider.signature_verification_algorithms;
        Arc::new(Only { key: self.key(), algorithms })
    }
}

/// Nobody sees it.
impl std::fmt::Debug for SharedKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SharedKey")
    }
}

fn wrong(error: Error) -> SettingsError {
    SettingsError::from(error.to_string())
}

/// Accepts one key.
struct Only {
    key: Arc<CertifiedKey>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Only {
    fn accepts(&self, shown: &CertificateDer<'_>) -> Result<(), Error> {
        match self.key.cert.first().is_some_and(|own| own.as_ref() == shown.as_ref()) {
            true => Ok(()),
            false => Err(CertificateError::ApplicationVerificationFailure.into()),
        }
    }

    fn verify(
        &self,
        message: &[u8],
        shown: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let key = SubjectPublicKeyInfoDer::from(shown.as_ref());
        verify_tls13_signature_with_raw_key(message, &key, signed, &self.algorithms)
    }

    fn schemes() -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }
}

/// TLS 1.2 is not spoken.
fn older() -> Result<HandshakeSignatureValid, Error> {
    Err(PeerMisbehaved::SelectedUnofferedCipherSuite.into())
}

impl std::fmt::Debug for Only {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Only")
    }
}

impl ServerCertVerifier for Only {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        _further: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.accepts(shown).map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        older()
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        shown: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verify(message, shown, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        Self::schemes()
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

impl ClientCertVerifier for Only {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        shown: &CertificateDer<'_>,
        _further: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.accepts(shown).map(|()| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        older()
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        shown: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verify(message, shown, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        Self::schemes()
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::{Failure, Reason};
    use crate::machine::{ClientMachine, ServerMachine};
    use crate::resolver::Certificates;
    use crate::server::ServerSettings;
    use crate::testing::{Authority, End, converse};
    use crate::tickets::TicketKeys;
    use crate::{Certificate, ServerTls};

    fn key(byte: u8) -> SharedKey {
        SharedKey::of_seed(&[byte; 32]).unwrap()
    }

    type Ends = ((ServerMachine, End), (ClientMachine, End));

    fn shake(
        server: &ServerTls,
        client: &ClientTls,
    ) -> Result<Ends, (Option<Failure>, Option<Failure>)> {
        let name = ServerName::try_from("192.0.2.1").unwrap();
        let mut server = (ServerMachine::new(server).unwrap(), End::default());
        let mut client = (ClientMachine::new(client, name).unwrap(), End::default());
        converse((&mut server.0, &mut server.1), (&mut client.0, &mut client.1), 500)?;
        Ok((server, client))
    }

    #[test]
    fn sides_with_one_key_agree_on_fresh_keys() {
        let (ours, theirs) = (key(1), key(1));
        let (mut server, mut client) =
            shake(&ours.server().unwrap(), &theirs.client().unwrap()).ok().unwrap();
        let facts = server.0.facts().unwrap();
        assert_eq!((facts.version, facts.protocol.as_deref()), ("TLSv1.3", Some(PROTOCOL)));
        assert!(!facts.resumed && facts.peer.is_none());
        client.0.encrypt(b"a question", &mut server.1.coming).unwrap();
        assert!(!server.1.coming.windows(8).any(|part| part == b"question"));
        server.0.encrypt(b"an answer", &mut client.1.coming).unwrap();
        converse((&mut server.0, &mut server.1), (&mut client.0, &mut client.1), 500).ok().unwrap();
        assert_eq!((&*server.1.plain, &*client.1.plain), (&b"a question"[..], &b"an answer"[..]));
        // No session is kept: the next handshake proves it again.
        let (server, _) = shake(&ours.server().unwrap(), &theirs.client().unwrap()).ok().unwrap();
        assert!(!server.0.facts().unwrap().resumed);
    }

    #[test]
    fn a_side_with_another_key_is_turned_away() {
        let (_, client) =
            shake(&key(1).server().unwrap(), &key(2).client().unwrap()).err().unwrap();
        let client = client.expect("the client finds that it is another one");
        assert_eq!(client.reason, Reason::PeerCertificate);
    }

    #[test]
    fn a_client_that_knows_the_key_of_the_server_and_shows_another_one_is_turned_away() {
        let client = key(1).client_that_shows(key(2).key()).unwrap();
        let (server, _) = shake(&key(1).server().unwrap(), &client).err().unwrap();
        let server = server.expect("the server finds that it is another one");
        assert_eq!(server.reason, Reason::PeerCertificate);
        let client = key(1).client_that_shows(key(1).key()).unwrap();
        assert!(shake(&key(1).server().unwrap(), &client).is_ok());
    }

    #[test]
    fn a_side_with_a_certificate_is_turned_away() {
        let authority = Authority::new("Root");
        let (own, own_key) = authority.issue(&["192.0.2.1"]);
        let stranger = authority.client(|settings| {
            settings.own = Some((own.clone().into_bytes(), own_key.clone().into_bytes()));
        });
        let nobody = authority.client(|_| {});
        for client in [stranger, nobody] {
            let (server, _) = shake(&key(1).server().unwrap(), &client).err().unwrap();
            assert!(server.is_some(), "it is no fault of the client alone");
        }

        let certificates = Arc::new(Certificates::default());
        let read = Certificate::read(own.as_bytes(), own_key.as_bytes(), None).unwrap();
        certificates.replace(&[read]);
        let settings = ServerSettings::default();
        let server =
            ServerTls::new(&settings, &certificates, &Arc::new(TicketKeys::default())).unwrap();
        let (_, client) = shake(&server, &key(1).client().unwrap()).err().unwrap();
        assert!(client.is_some(), "a server of another kind is none");
    }
}
