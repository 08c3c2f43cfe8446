//! The commands that need no running afpa: of configurations, completions and man pages.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::Args;

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
    /// Check it with the rights of this user, by whom it is started; as root
    #[arg(long = "as", value_name = "USER")]
    pub user: Option<String>,
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

const ROUTE_EXAMPLES: &str = "\
Examples:
  afpa route http://www.example.org/catalog/a.gif
  afpa route /api/users --method POST --config /etc/afpa/afpa.toml
  afpa route / --header 'Cookie: beta=yes' --listen '[::]:80'";

const CHECK_EXAMPLES: &str = "\
Examples:
  afpa check /etc/afpa/afpa.toml
  afpa check --as afpa /etc/afpa/afpa.toml          as the service of the packages reads it
  afpa check --explain afpa.toml | grep -v default
  afpa check --probe afpa.toml";

const ADAPT_EXAMPLES: &str = "\
Examples:
  afpa adapt /etc/nginx/nginx.conf
  afpa adapt /etc/nginx/nginx.conf -o /etc/afpa/afpa.toml && afpa check /etc/afpa/afpa.toml";

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  afpa completions bash > /etc/bash_completion.d/afpa
  afpa completions zsh > ~/.zfunc/_afpa
  afpa completions fish > ~/.config/fish/completions/afpa.fish";

const MAN_EXAMPLES: &str = "\
Examples:
  afpa man /usr/local/share/man/man1";
