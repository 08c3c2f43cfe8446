//! Sends batches to a collector, by OTLP over HTTP/1.1.

use std::error::Error as _;
use std::fmt;
use std::io;
use std::pin::Pin;
use std::time::Duration;

use afpa_names::ResolveSettings;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, USER_AGENT};
use http::{HeaderMap, Method, Request, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Client, Error};
use hyper_util::rt::TokioExecutor;
use prost::Message as _;
use rustls::{ClientConfig, RootCertStore};
use tokio::time::{sleep, timeout};

use crate::messages::{
    ExportRequest, ExportResponse, KeyValue, Resource, ResourceSpans, Scope, ScopeSpans, Span,
};
use crate::names::Names;
use crate::retry::{Loss, MOST_ATTEMPTS, Verdict, judge, pause};

/// How long one attempt may take: the default of OTLP's exporters.
const ATTEMPT: Duration = Duration::from_secs(10);

/// Bytes of an answer that are read.
const LONGEST_ANSWER: usize = 64 * 1024;

/// The collector, and the program that sends to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// `http://` or `https://`, host, and perhaps port and path; `/v1/traces` is added.
    pub endpoint: String,
    /// `service.name` of the spans.
    pub service: String,
    /// `service.version` of them.
    pub version: String,
    /// Further fields of each request, such as Authorization.
    pub fields: Vec<(String, String)>,
    /// How its name is looked up.
    pub resolver: ResolveSettings,
}

/// Spans as bytes.
#[derive(Clone, Debug)]
pub struct Batch {
    bytes: Bytes,
    count: u64,
}

impl Batch {
    /// How many there are.
    pub fn spans(&self) -> u64 {
        self.count
    }
}

/// Sends batches, one after the other.
pub struct Sender {
    client: Client<HttpsConnector<HttpConnector<Names>>, Full<Bytes>>,
    uri: Uri,
    fields: HeaderMap,
    resource: Resource,
    scope: Scope,
}

impl Sender {
    /// Reads the authorities that the system trusts, and starts the thread that looks names up: the thread that sends may
    /// be confined after that.
    ///
    /// # Errors
    /// When the endpoint is no URL, or the system refuses something.
    pub fn new(settings: &Settings) -> io::Result<Self> {
        let invalid =
            |why: &dyn fmt::Display| io::Error::new(io::ErrorKind::InvalidInput, why.to_string());
        let uri = format!("{}/v1/traces", settings.endpoint.trim_end_matches('/'));
        let uri: Uri = uri.parse().map_err(|why| invalid(&why))?;
        let mut fields = HeaderMap::new();
        fields.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
        let agent = HeaderValue::try_from(format!("afpa/{}", settings.version));
        fields.insert(USER_AGENT, agent.map_err(|why| invalid(&why))?);
        for (name, value) in &settings.fields {
            let name = HeaderName::try_from(name).map_err(|why| invalid(&why))?;
            let mut value = HeaderValue::try_from(value).map_err(|why| invalid(&why))?;
            value.set_sensitive(true);
            fields.insert(name, value);
        }
        let mut http = HttpConnector::new_with_resolver(Names::start(settings.resolver.clone())?);
        http.enforce_http(false);
        http.set_nodelay(true);
        let tls = match uri.scheme_str() {
            Some("https") => HttpsConnectorBuilder::new().with_native_roots()?,
            // The same client, so that it is in the program once; it needs nobody's certificate.
            _ => HttpsConnectorBuilder::new().with_tls_config(trusting_nobody()),
        };
        let connector = tls.https_or_http().enable_http1().wrap_connector(http);
        let client = Client::builder(TokioExecutor::new()).build(connector);
        let resource = Resource {
            attributes: vec![
                KeyValue::text("service.name", &*settings.service),
                KeyValue::text("service.version", &*settings.version),
            ],
        };
        let scope = Scope { name: "afpa".to_owned(), version: settings.version.clone() };
        Ok(Self { client, uri, fields, resource, scope })
    }

    /// Spans, ready to be sent.
    pub fn batch(&self, spans: Vec<Span>) -> Batch {
        let count = spans.len() as u64;
        let scope_spans = vec![ScopeSpans { scope: Some(self.scope.clone()), spans }];
        let resource = Some(self.resource.clone());
        let resource_spans = vec![ResourceSpans { resource, scope_spans }];
        Batch { bytes: ExportRequest { resource_spans }.encode_to_vec().into(), count }
    }

    /// Sends a batch, again if it is to be. `Ok` has the number of spans that the collector did not want.
    ///
    /// # Errors
    /// When all of it is lost.
    pub fn send<'a>(&'a self, batch: &'a Batch) -> Sent<'a> {
        Box::pin(self.send_until_taken(batch))
    }

    async fn send_until_taken(&self, batch: &Batch) -> Result<u64, Loss> {
        let mut attempts = 1;
        loop {
            let attempt = timeout(ATTEMPT, self.attempt(batch)).await;
            let (verdict, rejected) = attempt.ok().and_then(Result::ok).unwrap_or(UNREACHABLE);
            let (loss, asked_for) = match verdict {
                Verdict::Taken => return Ok(rejected),
                Verdict::Lost(loss) => return Err(loss),
                Verdict::Again(loss, _) if attempts >= MOST_ATTEMPTS => return Err(loss),
                Verdict::Again(loss, asked_for) => (loss, asked_for),
            };
            tracing::debug!(?loss, attempts, "the collector does not take spans now");
            sleep(pause(attempts, asked_for, rand::random())).await;
            attempts += 1;
        }
    }

    /// Sends a batch once: for the end of a program, which waits for nobody.
    ///
    /// # Errors
    /// When it is lost.
    pub fn send_once<'a>(&'a self, batch: &'a Batch) -> Sent<'a> {
        Box::pin(async {
            let (verdict, rejected) = self.attempt(batch).await.unwrap_or(UNREACHABLE);
            match verdict {
                Verdict::Taken => Ok(rejected),
                Verdict::Again(loss, _) | Verdict::Lost(loss) => Err(loss),
            }
        })
    }

    async fn attempt(&self, batch: &Batch) -> Result<(Verdict, u64), Error> {
        let mut request = Request::new(Full::new(batch.bytes.clone()));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.uri.clone();
        *request.headers_mut() = self.fields.clone();
        let answer = self.client.request(request).await.inspect_err(|error| {
            tracing::debug!(%error, cause = ?error.source(), "the collector cannot be reached");
        })?;
        let retry_after = answer.headers().get(RETRY_AFTER).map(HeaderValue::as_bytes);
        let verdict = judge(answer.status().as_u16(), retry_after);
        if verdict != Verdict::Taken {
            return Ok((verdict, 0));
        }
        // The spans are there, whatever comes now.
        let content = Limited::new(answer.into_body(), LONGEST_ANSWER).collect().await;
        let content = content.map(http_body_util::Collected::to_bytes).unwrap_or_default();
        let rejected = ExportResponse::decode(content).ok().and_then(|said| said.partial_success);
        let rejected = rejected.map_or(0, |partial| partial.rejected_spans);
        Ok((verdict, u64::try_from(rejected).unwrap_or(0)))
    }
}

/// The fate of a batch. Boxed, so that the client is in the program once, and not again in the crate that waits.
pub type Sent<'a> = Pin<Box<dyn Future<Output = Result<u64, Loss>> + 'a>>;

fn trusting_nobody() -> ClientConfig {
    ClientConfig::builder().with_root_certificates(RootCertStore::empty()).with_no_client_auth()
}

const UNREACHABLE: (Verdict, u64) = (Verdict::Again(Loss::Unreachable, None), 0);

impl fmt::Debug for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").field("uri", &self.uri).finish_non_exhaustive()
    }
}
