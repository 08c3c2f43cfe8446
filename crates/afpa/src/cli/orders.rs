//! The commands that ask a running afpa, or give it an order.

use clap::{Args, Subcommand};

use super::target::{Target, seconds};

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

const TOP_OF_ALL_EXAMPLES: &str = "\
Examples:
  afpa top
  afpa top --every 0.5 --control /run/afpa/control.sock
  afpa top -n 1 > now.txt                           one screen, for a script";

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
