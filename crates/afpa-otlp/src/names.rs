//! The addresses of the collector's name. The thread that sends reads no file, so another one looks names up: it reads
//! `/etc/hosts` and `/etc/resolv.conf` anew each time, and answers of name servers.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::vec;

use afpa_names::{ResolveSettings, resolve};
use hyper_util::client::legacy::connect::dns::Name;
use tokio::sync::{mpsc, oneshot};
use tower_service::Service;

/// A name, and where its addresses go.
type Question = (String, oneshot::Sender<io::Result<Vec<SocketAddr>>>);

/// Asks the thread that looks names up, which ends with the last of these.
#[derive(Clone, Debug)]
pub(crate) struct Names(mpsc::Sender<Question>);

impl Names {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the system has no thread or no event queue left.
    pub(crate) fn start(settings: ResolveSettings) -> io::Result<Self> {
        let (questions, mut inbox) = mpsc::channel::<Question>(1);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let run = async move {
            while let Some((name, reply)) = inbox.recv().await {
                let found = resolve(&name, &settings).await.map_err(io::Error::other);
                let addresses = |found: afpa_names::Resolved| {
                    found.addresses.into_iter().map(|address| SocketAddr::new(address, 0)).collect()
                };
                // If the time is over, the caller does not wait any more.
                let _ = reply.send(found.map(addresses));
            }
        };
        let thread = std::thread::Builder::new().name("afpa-otlp-names".to_owned());
        thread.spawn(move || runtime.block_on(run))?;
        Ok(Self(questions))
    }
}

impl Service<Name> for Names {
    type Response = vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, io::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), io::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let questions = self.0.clone();
        Box::pin(async move {
            let gone = |_| io::Error::other("the thread that looks names up has ended");
            let (reply, answer) = oneshot::channel();
            let sent = questions.send((name.as_str().to_owned(), reply)).await;
            sent.map_err(|_| io::Error::other("the thread that looks names up has ended"))?;
            Ok(answer.await.map_err(gone)??.into_iter())
        })
    }
}
