//! Lines for the operator, on standard error and standard output.
//!
//! A line may be lost, but the thread that says it goes on. So nothing here panics or returns an error, even if the
//! descriptor fails (its reader has gone, its disk is full, it was closed), and nothing waits for a reader longer than
//! a moment. The standard library's `eprintln!` panics, and waits for ever where a pipe is full. A test of the plan
//! forbids it, and its like, in the program.

mod line;

use std::io;
use std::panic::PanicHookInfo;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use line::Line;

/// Says `text`, which ends with its line, on standard error.
pub fn error(text: &str) {
    lock(&ERROR).say(rustix::stdio::stderr(), text.as_bytes());
}

/// Says `text`, which ends with its line, on standard output.
pub fn status(text: &str) {
    lock(&OUTPUT).say(rustix::stdio::stdout(), text.as_bytes());
}

/// Messages on standard error that were lost.
pub fn lost() -> u64 {
    lock(&ERROR).lost()
}

/// Standard error for those that want a writer: each write is one message, and always succeeds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Errors;

impl io::Write for Errors {
    fn write(&mut self, message: &[u8]) -> io::Result<usize> {
        lock(&ERROR).say(rustix::stdio::stderr(), message);
        Ok(message.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes all of the result of a command to standard output, and waits for its reader. A reader that has seen enough
/// (`| head`) is no error.
///
/// # Errors
/// What the system says of any other failure.
pub fn result(bytes: &[u8]) -> io::Result<()> {
    let to = rustix::stdio::stdout();
    let mut rest = bytes;
    while !rest.is_empty() {
        match rustix::io::write(to, rest) {
            Ok(count) => rest = rest.get(count..).unwrap_or_default(),
            Err(Errno::INTR) => {}
            // Another process has made the pipe or the terminal non-blocking, for all that share it.
            Err(Errno::AGAIN) => {
                let _ = poll(&mut [PollFd::new(&to, PollFlags::OUT)], None);
            }
            Err(Errno::PIPE) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Standard output for a log, unbuffered. A write does not wait for a reader: it fails with
/// [`io::ErrorKind::WouldBlock`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Output;

impl io::Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(lock(&OUTPUT).write(rustix::stdio::stdout(), bytes)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Must be called first of all, with the rights that the process was started with: another user may not be able to
/// open the pipes and terminals once more. From now on [`error`] reports panics.
pub fn begin() {
    lock(&ERROR).open(rustix::stdio::stderr());
    lock(&OUTPUT).open(rustix::stdio::stdout());
    std::panic::set_hook(Box::new(|panic| error(&words(panic))));
}

fn words(panic: &PanicHookInfo<'_>) -> String {
    let thread = std::thread::current();
    let name = thread.name().unwrap_or("<unnamed>");
    let backtrace = std::backtrace::Backtrace::capture();
    match backtrace.status() {
        std::backtrace::BacktraceStatus::Captured => {
            format!("thread '{name}' {panic}\n{backtrace}\n")
        }
        _ => format!("thread '{name}' {panic}\n"),
    }
}

static ERROR: Mutex<Line> = Mutex::new(Line::new());
static OUTPUT: Mutex<Line> = Mutex::new(Line::new());

fn lock(line: &'static Mutex<Line>) -> MutexGuard<'static, Line> {
    line.lock().unwrap_or_else(PoisonError::into_inner)
}
