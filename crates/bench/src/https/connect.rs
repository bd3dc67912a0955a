//! A client's TLS connection: its offer, and whether it resumes.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{ClientConfig, Resumption};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, SignatureScheme};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::Failure;

/// Sessions that a client stores. Each connection consumes one and receives new ones.
const SESSIONS_MAX: usize = 8;

/// A client's offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offer {
    /// One cipher suite and one group ([`super::CIPHER`], [`super::GROUP`]).
    Measured,
    /// The defaults of OpenSSL 3, in its order; the proxy chooses.
    Usual,
}

/// The configuration of a client that offers the protocols of `alpn` (empty: no ALPN), and that
/// always or never resumes sessions.
///
/// # Errors
/// The library refuses the settings.
pub fn config(offer: Offer, alpn: &[&str], resumes: bool) -> Result<Arc<ClientConfig>, Failure> {
    use aws_lc_rs::{cipher_suite as suite, kx_group as group};
    let (cipher_suites, kx_groups) = match offer {
        Offer::Measured => (vec![suite::TLS13_AES_128_GCM_SHA256], vec![group::X25519]),
        Offer::Usual => (
            vec![
                suite::TLS13_AES_256_GCM_SHA384,
                suite::TLS13_CHACHA20_POLY1305_SHA256,
                suite::TLS13_AES_128_GCM_SHA256,
                suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
                suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
            ],
            vec![group::X25519, group::SECP256R1, group::SECP384R1],
        ),
    };
    let provider = Arc::new(CryptoProvider {
        cipher_suites,
        kx_groups,
        ..aws_lc_rs::default_provider()
    });
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider));
    let versions: &[_] = match offer {
        Offer::Measured => &[&rustls::version::TLS13],
        Offer::Usual => rustls::ALL_VERSIONS,
    };
    let mut config = builder
        .with_protocol_versions(versions)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Unchecked(provider)))
        .with_no_client_auth();
    config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    config.resumption = if resumes {
        Resumption::in_memory_sessions(SESSIONS_MAX)
    } else {
        Resumption::disabled()
    };
    Ok(Arc::new(config))
}

/// Connects to `address` and completes the handshake.
///
/// # Errors
/// Those of the connection and of the handshake.
pub async fn connect(
    address: SocketAddr,
    config: &Arc<ClientConfig>,
) -> io::Result<TlsStream<TcpStream>> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let name = ServerName::try_from("localhost").map_err(io::Error::other)?;
    TlsConnector::from(Arc::clone(config))
        .connect(name, stream)
        .await
}

/// Accepts every certificate: the certificate is ours, and verifying its signature would cost more
/// CPU than the proxy's signing.
#[derive(Debug)]
struct Unchecked(Arc<CryptoProvider>);

impl ServerCertVerifier for Unchecked {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
