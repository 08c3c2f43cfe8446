//! The command line. Completions and man pages are made from these definitions.

mod serve;
#[cfg(test)]
mod tests;

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args, CommandFactory, Parser, Subcommand};

use crate::commands::attach::{Attach, Detach};
use crate::commands::doctor::Doctor;
use crate::commands::explain::Explain;
use crate::commands::pause::Pause;

pub use serve::{Proxy, Running, Serve};

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
    /// settings of a file.
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

/// `afpa check`.
#[derive(Args, Debug)]
#[command(after_help = CHECK_EXAMPLES)]
pub struct Check {
    /// File to check
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Print errors and warnings only
    #[arg(short, long)]
    pub quiet: bool,
    /// Print what is in force and why, a line a setting: its value here, and where that comes from
    #[arg(long, conflicts_with = "quiet")]
    pub explain: bool,
    /// Print the file as one, with its includes and variables, but without contents of ${file:...}
    #[arg(long, conflicts_with_all = ["quiet", "explain"])]
    pub print: bool,
    /// Connect to each server behind, and fail if one takes no connections
    #[arg(long)]
    pub probe: bool,
}

/// `afpa adapt`.
#[derive(Args, Debug)]
#[command(after_help = ADAPT_EXAMPLES)]
pub struct Adapt {
    /// Configuration of nginx; files that it includes are read, too. Or the output of `nginx -T`, which has them all; -: from
    /// standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// New file for the translation [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// `afpa route`.
#[derive(Args, Debug)]
#[command(after_help = ROUTE_EXAMPLES)]
pub struct Route {
    /// URL, or its path alone
    #[arg(value_name = "URL")]
    pub url: String,
    /// Configuration file [default: afpa.toml here, else /etc/afpa/afpa.toml]
    #[arg(short, long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Method of the request
    #[arg(short, long, value_name = "METHOD", default_value = "GET")]
    pub method: String,
    /// Field of the request, such as 'Cookie: beta=yes'; may be repeated
    #[arg(short = 'H', long, value_name = "NAME: VALUE")]
    pub header: Vec<String>,
    /// Address of the client [default: one that is in no network]
    #[arg(long, value_name = "ADDRESS")]
    pub client: Option<IpAddr>,
    /// Listening address of the request [default: the first with the port of the URL]
    #[arg(short, long, value_name = "ADDR:PORT|unix:PATH")]
    pub listen: Option<String>,
}

/// `afpa health`.
#[derive(Args, Debug)]
#[command(after_help = HEALTH_EXAMPLES)]
pub struct Health {
    /// Which afpa to ask, and how.
    #[command(flatten)]
    pub target: Target,
}

/// `afpa stats`.
#[derive(Args, Debug)]
#[command(after_help = STATS_EXAMPLES)]
pub struct Stats {
    /// Print the numbers as JSON
    #[arg(long)]
    pub json: bool,
    /// All numbers, behind the ten lines that matter
    #[arg(long)]
    pub all: bool,
    /// Instead of all numbers, the kept answers of servers that have saved most time
    #[arg(long, value_name = "COUNT", num_args = 0..=1, default_missing_value = "20")]
    pub top: Option<u32>,
    /// Which afpa to ask, and how.
    #[command(flatten)]
    pub target: Target,
}

/// `afpa top`.
#[derive(Args, Debug)]
#[command(after_help = TOP_OF_ALL_EXAMPLES)]
pub struct Top {
    /// Seconds from one screen to the next
    #[arg(short, long, value_name = "SECONDS", default_value = "2", value_parser = seconds)]
    pub every: f64,
    /// End after so many screens
    #[arg(short = 'n', long, value_name = "COUNT")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub screens: Option<u32>,
    /// Which afpa to ask, and how.
    #[command(flatten)]
    pub target: Target,
}

/// Seconds from 0.1 to an hour.
fn seconds(text: &str) -> Result<f64, String> {
    let bare = |unit, length| Some((text.strip_suffix(unit)?, length));
    // The units of the configuration; a number alone has seconds.
    let (digits, length) = bare("ms", 0.001)
        .or_else(|| bare("s", 1.0))
        .or_else(|| bare("m", 60.0))
        .unwrap_or((text, 1.0));
    let number = digits.parse::<f64>().ok().map(|number| number * length);
    let number = number.filter(|number| (0.1..=3600.0).contains(number));
    number.ok_or_else(|| "write seconds from 0.1 to 3600, as 2, 500ms or 1m".to_owned())
}

/// `afpa purge`.
#[derive(Args, Debug)]
#[command(after_help = PURGE_EXAMPLES)]
pub struct Purge {
    /// URL, or its path alone; without a query: with any
    #[arg(value_name = "URL", required_unless_present_any = ["tag", "host", "name", "zone"])]
    pub url: Option<String>,
    /// Only in the site with this host name [default: that of the URL, else all sites]; without a URL:
    /// all answers of servers that are kept for it
    #[arg(long, value_name = "NAME")]
    pub host: Option<String>,
    /// Drop all kept answers of servers whose URLs begin with this one
    #[arg(long, requires = "url")]
    pub below: bool,
    /// Everything of servers with this tag (Surrogate-Key, Cache-Tag, Cache-Groups)
    #[arg(long, value_name = "TAG", conflicts_with_all = ["url", "host"])]
    pub tag: Option<String>,
    /// DNS: drop the answers for this name; `afpa serve` reads the file of its zone again
    #[arg(long, value_name = "NAME", conflicts_with_all = ["url", "host", "tag", "soft"])]
    pub name: Option<String>,
    /// DNS: the same for all names of this zone
    #[arg(long, value_name = "NAME", conflicts_with_all = ["url", "host", "tag", "soft", "name"])]
    pub zone: Option<String>,
    /// Keep the answers of servers, but have the server confirm each before it is used again
    #[arg(long)]
    pub soft: bool,
    /// On every machine of the fleet; the exit status is 0 when all have done it
    #[arg(long)]
    pub fleet: bool,
    /// With --fleet, how long to wait for the machines
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    pub wait: f64,
    /// Which afpa to ask, and how.
    #[command(flatten)]
    pub target: Target,
}

/// `afpa fleet`.
#[derive(Args, Debug)]
#[command(after_help = FLEET_EXAMPLES, args_conflicts_with_subcommands = true)]
pub struct Fleet {
    /// The order; without one, the members are shown.
    #[command(subcommand)]
    pub order: Option<FleetOrder>,
    /// Print the answer as JSON
    #[arg(long)]
    pub json: bool,
    /// Which afpa to ask, and how.
    #[command(flatten)]
    pub target: Target,
}

/// Orders about the configuration of a fleet.
#[derive(Debug, Subcommand)]
pub enum FleetOrder {
    /// Check a configuration, and roll it out to all machines
    ///
    /// One machine takes it, then a quarter, then all. It is rolled back by itself when one cannot take it or falls
    /// silent, and when errors or times rise (`rollout_errors`, `rollout_p99`). The exit status is 0 when all machines run
    /// it. The roll-out goes on when this command is interrupted.
    Push(FleetPush),
    /// Go back to a revision, at once and on all machines
    Rollback(FleetRollback),
    /// List the revisions that were pushed
    Revisions(FleetRevisions),
}

/// `afpa fleet push`.
#[derive(Args, Debug)]
pub struct FleetPush {
    /// File, with all that it includes, or a folder with files *.toml
    #[arg(value_name = "FILE|DIR")]
    pub path: PathBuf,
    /// Return when the servers have it
    #[arg(long)]
    pub no_wait: bool,
    /// Which afpa to ask, and how.
    #[command(flatten)]
    pub target: Target,
}

/// `afpa fleet rollback`.
#[derive(Args, Debug)]
pub struct FleetRollback {
    /// Revision [default: the one before]
    #[arg(value_name = "REVISION")]
    pub revision: Option<u64>,
    /// How long to wait for the machines
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    pub wait: f64,
    /// Which afpa to ask, and how.
    #[command(flatten)]
    pub target: Target,
}

/// `afpa fleet revisions`.
#[derive(Args, Debug)]
pub struct FleetRevisions {
    /// Print the answer as JSON
    #[arg(long)]
    pub json: bool,
    /// Which afpa to ask, and how.
    #[command(flatten)]
    pub target: Target,
}

/// `afpa server`.
#[derive(Args, Debug)]
#[command(after_help = SERVER_EXAMPLES)]
pub struct Server {
    /// Order for the server
    #[arg(value_name = "ORDER", value_enum)]
    pub order: Order,
    /// Server as `afpa stats` lists it: ADDR:PORT, NAME:PORT (all its addresses), unix:PATH
    #[arg(value_name = "SERVER")]
    pub server: String,
    /// Only in this server group [default: in every group that has the server]
    #[arg(short, long, value_name = "NAME")]
    pub group: Option<String>,
    /// Which afpa to ask, and how.
    #[command(flatten)]
    pub target: Target,
}

/// Orders for a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Order {
    /// Take no new requests.
    Drain,
    /// Take requests as its weight says.
    Ready,
}

/// `afpa deny`.
#[derive(Args, Debug)]
#[command(after_help = DENY_EXAMPLES)]
pub struct Deny {
    /// The order.
    #[command(subcommand)]
    pub order: DenyOrder,
}

/// Orders for denied clients.
#[derive(Debug, Subcommand)]
pub enum DenyOrder {
    /// Refuse the clients of a prefix
    Add(DenyPrefix),
    /// Take such an order back
    Del(DenyPrefix),
    /// Show the denied clients, by the configuration and by orders
    List(Target),
}

/// A prefix of clients.
#[derive(Args, Debug)]
pub struct DenyPrefix {
    /// Address, or address and number of bits
    #[arg(value_name = "PREFIX")]
    pub prefix: String,
    /// On every machine of the fleet, and on those that join it later
    #[arg(long)]
    pub fleet: bool,
    /// With --fleet, how long to wait for the machines
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    pub wait: f64,
    /// Which afpa to ask, and how.
    #[command(flatten)]
    pub target: Target,
}

/// `afpa call`.
#[derive(Args, Debug)]
#[command(after_help = CALL_EXAMPLES)]
pub struct Call {
    /// Operation [default: list them]
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    /// Its parameters
    #[arg(value_name = "NAME=VALUE", value_parser = parameter)]
    pub parameters: Vec<(String, String)>,
    /// Which afpa to ask, and how.
    #[command(flatten)]
    pub target: Target,
}

fn parameter(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write it as NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// A running afpa.
#[derive(Args, Clone, Debug, Default)]
pub struct Target {
    /// Ask the afpa with this process id, if several are running
    #[arg(short, long, value_name = "PID", conflicts_with = "control")]
    pub pid: Option<u32>,
    /// Ask through this control socket
    #[arg(long, value_name = "PATH")]
    pub control: Option<PathBuf>,
}

/// `afpa completions`.
#[derive(Args, Debug)]
#[command(after_help = COMPLETIONS_EXAMPLES)]
pub struct Completions {
    /// Shell
    #[arg(value_name = "SHELL")]
    pub shell: clap_complete::Shell,
}

/// `afpa man`.
#[derive(Args, Debug)]
#[command(after_help = MAN_EXAMPLES)]
pub struct Man {
    /// Existing directory to write them to
    #[arg(value_name = "DIR", default_value = ".")]
    pub directory: PathBuf,
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

const ROUTE_EXAMPLES: &str = "\
Examples:
  afpa route http://www.example.org/catalog/a.gif
  afpa route /api/users --method POST --config /etc/afpa/afpa.toml
  afpa route / --header 'Cookie: beta=yes' --listen '[::]:80'";

const TOP_OF_ALL_EXAMPLES: &str = "\
Examples:
  afpa top
  afpa top --every 0.5 --control /run/afpa/control.sock
  afpa top -n 1 > now.txt                           one screen, for a script";

const CHECK_EXAMPLES: &str = "\
Examples:
  afpa check /etc/afpa/afpa.toml
  afpa check --quiet afpa.toml && systemctl reload afpa
  afpa check --explain afpa.toml | grep -v default
  afpa check --probe afpa.toml";

const ADAPT_EXAMPLES: &str = "\
Examples:
  afpa adapt /etc/nginx/nginx.conf
  afpa adapt /etc/nginx/nginx.conf -o /etc/afpa/afpa.toml && afpa check /etc/afpa/afpa.toml";

const HEALTH_EXAMPLES: &str = "\
Examples:
  afpa health
  afpa health --control /run/afpa/control.sock";

const STATS_EXAMPLES: &str = "\
Examples:
  afpa stats
  afpa stats --top
  afpa stats --json | jq .cache";

const PURGE_EXAMPLES: &str = "\
Examples:
  afpa purge /news/index.html
  afpa purge --host www.example.org /news/index.html
  afpa purge http://www.example.org/news/index.html
  afpa purge --fleet --tag news                     on every machine of the fleet";

const FLEET_EXAMPLES: &str = "\
Examples:
  afpa fleet
  afpa fleet --json | jq '.members[].name'
  afpa fleet push /etc/afpa/shared.toml
  afpa fleet revisions
  afpa fleet rollback 3";

const SERVER_EXAMPLES: &str = "\
Examples:
  afpa server drain 10.0.0.2:3000
  afpa server ready 10.0.0.2:3000
  afpa server drain app.example:80 --group app";

const DENY_EXAMPLES: &str = "\
Examples:
  afpa deny add 198.51.100.0/24
  afpa deny add 2001:db8:bad::/48
  afpa deny del 198.51.100.0/24
  afpa deny add --fleet 198.51.100.0/24             on every machine of the fleet
  afpa deny list";

const CALL_EXAMPLES: &str = "\
Examples:
  afpa call
  afpa call stats
  afpa call types/set extension=md type='text/markdown; charset=utf-8'";

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  afpa completions bash > /etc/bash_completion.d/afpa
  afpa completions zsh > ~/.zfunc/_afpa
  afpa completions fish > ~/.config/fish/completions/afpa.fish";

const MAN_EXAMPLES: &str = "\
Examples:
  afpa man /usr/local/share/man/man1";
