//! The side that asks for the next process, and waits until it serves.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::{Instant, sleep_until};

use super::{program, wire};

/// A start that takes longer hangs. Documents and caches are loaded after it.
const PATIENCE: Duration = Duration::from_secs(60);

/// The process that can start the next one. It ends with this value.
#[derive(Debug)]
pub(crate) struct Starter {
    socket: UnixStream,
    process: Child,
}

/// A next process that has begun, and does not serve yet.
#[derive(Debug)]
pub(crate) struct Starting {
    news: Lines<BufReader<OwnedReadHalf>>,
    starter: Lines<BufReader<tokio::net::UnixStream>>,
    to_next: OwnedWriteHalf,
    pid: Option<u32>,
    since: Instant,
}

/// An event of a next process.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// It is about to load its programs into the kernel, and waits for [`Starting::answer`].
    WantsFastPath,
    /// It serves; its number, if that is known.
    Serves(Option<u32>),
    /// It will not serve, and why.
    Failed(String),
}

impl Starter {
    /// Starts the process. To be called while this process has its privileges still, and holds no inherited descriptor.
    ///
    /// # Errors
    /// When it cannot be started.
    pub(crate) fn begin() -> io::Result<Self> {
        let (socket, theirs) = UnixStream::pair()?;
        let process = Command::new("/proc/self/exe")
            .arg0(super::PROCESS)
            .arg(program::path()?)
            .args(std::env::args_os().collect::<Vec<OsString>>())
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .spawn()?;
        Ok(Self { socket, process })
    }

    /// Has the next process started, with these listening sockets.
    ///
    /// # Errors
    /// When the starting process is gone.
    pub(crate) fn start(&self, sockets: &[BorrowedFd<'_>]) -> io::Result<Starting> {
        // Of an upgrade that failed, there may be news that nobody has read, and descriptors that were not used.
        wire::send_end(&self.socket)?;
        wire::drop_news(&self.socket)?;
        let (ours, theirs) = UnixStream::pair()?;
        let all: Vec<BorrowedFd<'_>> =
            std::iter::once(theirs.as_fd()).chain(sockets.iter().copied()).collect();
        wire::send_descriptors(&self.socket, &all)?;
        wire::send_start(&self.socket)?;
        let asynchronous = |socket: UnixStream| {
            socket.set_nonblocking(true)?;
            tokio::net::UnixStream::from_std(socket)
        };
        let (news, to_next) = asynchronous(ours)?.into_split();
        // The descriptor shares its mode with ours: orders are short, and find room without waiting.
        let starter = asynchronous(self.socket.try_clone()?)?;
        Ok(Starting {
            news: BufReader::new(news).lines(),
            starter: BufReader::new(starter).lines(),
            to_next,
            pid: None,
            since: Instant::now(),
        })
    }

    /// Ends a process that was started and does not serve.
    pub(crate) fn end_next(&self) {
        // It is gone if the starting process is.
        let _ = wire::send_end(&self.socket);
    }
}

impl Drop for Starter {
    /// It ends when the socket is closed; until then it would be a child that nobody waits for.
    fn drop(&mut self) {
        let _ = self.socket.shutdown(std::net::Shutdown::Both);
        let _ = self.process.wait();
    }
}

impl Starting {
    /// The next event. Can be dropped and called again.
    pub(crate) async fn news(&mut self) -> News {
        loop {
            tokio::select! {
                // A process that ends has closed its channel as well: the starting process knows why.
                biased;
                told = self.starter.next_line() => match told.ok().flatten().as_deref() {
                    Some(told) if told.starts_with("pid ") => self.pid = told[4..].parse().ok(),
                    Some(why) => return News::Failed(why.to_owned()),
                    None => return News::Failed("the process that starts it has ended".to_owned()),
                },
                said = self.news.next_line() => match said.ok().flatten().as_deref() {
                    Some("fast path") => return News::WantsFastPath,
                    Some("serving") => return News::Serves(self.number().await),
                    Some(other) => return News::Failed(format!("says {other:?}, which this version does not know")),
                    // The starting process tells its end; a program that knows no upgrade may have closed the socket.
                    None => return self.why_silent().await,
                },
                () = sleep_until(self.since + PATIENCE) => {
                    return News::Failed(format!("does not serve after {} s", PATIENCE.as_secs()));
                }
            }
        }
    }

    /// Answers it.
    pub(crate) async fn answer(&mut self) {
        // `news` tells the end of a process that does not read it.
        let _ = self.to_next.write_all(b"yours\n").await;
    }

    /// The number of the next process. The starting process has told it, but perhaps it was not read yet.
    async fn number(&mut self) -> Option<u32> {
        if self.pid.is_none() {
            let told = tokio::time::timeout(Duration::from_secs(1), self.starter.next_line()).await;
            let told = told.ok().and_then(Result::ok).flatten().unwrap_or_default();
            self.pid = told.strip_prefix("pid ").and_then(|number| number.parse().ok());
        }
        self.pid
    }

    async fn why_silent(&mut self) -> News {
        let told = tokio::time::timeout(Duration::from_secs(1), async {
            loop {
                match self.starter.next_line().await {
                    Ok(Some(told)) if told.starts_with("pid ") => {}
                    Ok(Some(why)) => return why,
                    _ => return "the process that starts it has ended".to_owned(),
                }
            }
        });
        let silent = |_| "does not take the sockets: it is no afpa, or an older one".to_owned();
        News::Failed(told.await.unwrap_or_else(silent))
    }
}
