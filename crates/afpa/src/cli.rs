//! The command line. Completions and man pages are made from these definitions.

mod files;
mod fleet;
mod orders;
mod serve;
mod target;
#[cfg(test)]
mod tests;

use clap::{CommandFactory, Parser, Subcommand};

use crate::commands::attach::{Attach, Detach};
use crate::commands::doctor::Doctor;
use crate::commands::explain::Explain;
use crate::commands::pause::Pause;

pub use files::{Adapt, Check, Completions, Man, Route};
pub use fleet::{Fleet, FleetOrder, FleetPush, FleetRevisions, FleetRollback};
pub use orders::{Call, Deny, DenyOrder, DenyPrefix, Health, Order, Purge, Server, Stats, Top};
pub use serve::{Proxy, Running, Serve};
pub use target::Target;

/// The help that `afpa` prints without arguments.
pub const SHORT_HELP: &str = "\
afpa - a web accelerator that serves the working set from RAM

  afpa serve DIR                     serve DIR on http://127.0.0.1:8080/
  afpa proxy --root DIR --to HOST:PORT   and distribute what is not a file
  afpa attach --listen ADDR:PORT --root DIR   accelerate the server that runs there
  afpa serve --config afpa.toml      serve what a file describes
  afpa stats                         what the running one is doing
  afpa top                           the same, again and again

More: afpa --help, or afpa help COMMAND
";

/// A web accelerator that serves the working set from RAM.
///
/// Files are kept in locked memory with their response heads ready made; a change of a file drops it
/// from the cache at once.
#[derive(Debug, Parser)]
#[command(name = "afpa", version, after_help = TOP_EXAMPLES, max_term_width = 100)]
pub struct Cli {
    /// The command; without one, `afpa` prints a short help.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// The commands of `afpa`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve a directory
    ///
    /// Without options, the working set of DIR is served from RAM on 127.0.0.1:8080. Options override the
    /// settings of a file. The exit status is 78 if the configuration is wrong.
    Serve(Box<Serve>),
    /// Serve a directory, and distribute everything else to a server
    ///
    /// Files of DIR with a cached extension are served from RAM. All other requests go to the server, on
    /// persistent connections. Takes the options of `afpa serve`.
    Proxy(Box<Proxy>),
    /// Check a configuration file, and print the value of every setting
    ///
    /// Prints every setting with its value and where it was set, then warnings. The exit status is 0 if afpa
    /// would start with the file, 1 if not.
    Check(Check),
    /// Translate a configuration of nginx
    ///
    /// Prints it in AFPA's words. Standard error has, line by line, what is left out or differs, and why. The exit status
    /// is 0 if all was translated, 1 if not; the rest is printed all the same.
    Adapt(Adapt),
    /// Tell whether the kernel can answer on this host, and what keeps it from that
    ///
    /// Looks at the kernel, interfaces, routes, listeners and other programs, and names the remedy for each finding.
    /// The exit status is 0 if the fast path can be had, 1 if not.
    Doctor(Doctor),
    /// Show the request set of a URL, and why it was chosen
    ///
    /// Reads a configuration file; it does not ask a running process. The exit status is 0 if there is a
    /// request set, 1 if the answer would be 404 or 421.
    Route(Route),
    /// Tell whether the kernel would answer a request, and why not
    ///
    /// Judges recorded heads, or the lines of an access log, by the parser of the kernel's programs. It asks no running
    /// process, and takes no rights.
    Explain(Explain),
    /// Ask the running afpa whether it answers
    ///
    /// For health checks of containers and scripts. Prints `ok`; the exit status is 0 if it answered within five seconds, 1
    /// if not.
    Health(Health),
    /// Show what the running afpa is doing
    ///
    /// Requests, cache and connections of the afpa of this user.
    Stats(Stats),
    /// Show what the running afpa is doing, again and again
    ///
    /// Rates since the last screen: answers by context, workers, servers, sites, and what is asked for most. Ctrl-C ends
    /// it. Into a file or a pipe, one screen follows the other.
    Top(Top),
    /// Drop a URL from the cache of the running afpa
    ///
    /// The next request for it reads the file again. Files that change need no purge, because they are
    /// watched.
    Purge(Purge),
    /// Let a server behind the running afpa drain, or take requests again
    ///
    /// A draining server finishes its requests, and gets new ones only from clients that a cookie binds to
    /// it. When none is in flight, it can be stopped without losing a request. The order stays in force over
    /// reloads, until `ready` or the end of afpa. `afpa stats` shows the servers and their requests in flight.
    Server(Server),
    /// Deny clients at the running afpa, or let them in again
    ///
    /// The kernel drops the first segment of a denied client's connections, where the fast path is in use; else AFPA
    /// closes them. An order acts at once and stays in force over reloads, until `del` or the end of afpa.
    Deny(Deny),
    /// Show the machines of the fleet
    ///
    /// The members, the place of each in the log of orders to purge, its load, and a check of its configuration.
    Fleet(Fleet),
    /// Carry out any operation of the running afpa
    ///
    /// Without a name, lists all operations with their parameters: the framework's, and those of its protocol module.
    Call(Call),
    /// Accelerate a server that is already running
    ///
    /// The kernel answers requests for small files, on the server's own connections, with the server's own
    /// answers. The server is neither changed nor restarted.
    Attach(Box<Attach>),
    /// End an `afpa attach`, and clean up after one that was killed
    Detach(Detach),
    /// Let the kernel answer nothing any more, at once
    ///
    /// The server, or AFPA in user mode, answers everything from then on, on the same connections. Takes effect with
    /// one write to the kernel's memory, even while the process that drives the fast path hangs.
    Pause(Pause),
    /// Let the kernel answer again after `afpa pause`
    Resume(Pause),
    /// Print a completion script for a shell
    Completions(Completions),
    /// Write the man pages
    ///
    /// One page for afpa and one for each command.
    Man(Man),
}

/// The definitions as clap has them.
pub fn command() -> clap::Command {
    Cli::command()
}

const TOP_EXAMPLES: &str = "\
Examples:
  afpa serve /var/www/html                          on http://127.0.0.1:8080/
  afpa serve /var/www/html --listen '[::]:80'       for everyone, as root
  afpa proxy --root static --to 127.0.0.1:3000      static files, and an application
  afpa attach --listen 0.0.0.0:80 --root /var/www   before the nginx or Apache that runs there
  afpa serve --config /etc/afpa/afpa.toml           as a file describes
  afpa check /etc/afpa/afpa.toml                    check a file, print every setting
  afpa stats                                        what the running one is doing
  afpa top                                          the same, again and again";
