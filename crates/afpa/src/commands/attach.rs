//! `afpa attach` and `afpa detach`: their options, as settings of `afpa-attach`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use afpa_attach::dns::DnsSettings;
use afpa_attach::kept::KeptScope;
use afpa_attach::{AttachSettings, DetachSettings, DropRights, ReadPolice, Rights, Scope, Step};
use afpa_bpf::longest_answer;
use afpa_cache::root::SymlinkPolicy;
use afpa_config::{Connections, prefixes_of_files};
use afpa_police::{Class, Classes, Limits, NotAPrefix, PoliceSettings, Prefix, Rate};
use anyhow::bail;
use clap::{ArgAction, Args};
use rustix::thread::CapabilitySet;

use crate::confine::Confinement;
use crate::control;
use crate::fast_path::{admission, connections, pin_dir_owner};
use crate::privileges::{self, Identity};

/// `afpa attach`.
#[derive(Args, Debug)]
#[command(after_help = ATTACH_EXAMPLES)]
pub struct Attach {
    /// Address and port on which the server listens
    // Brackets would be a link in the documentation of the field.
    #[arg(short, long, value_name = "ADDR:PORT", required = true, help = LISTEN_HELP)]
    pub listen: Vec<SocketAddr>,
    /// Directory of the files that the server serves
    #[arg(short, long, value_name = "DIR", required_unless_present = "dns")]
    pub root: Option<PathBuf>,
    /// The server is one for DNS: give its answers to UDP queries
    #[arg(long, action = ArgAction::SetTrue, conflicts_with_all = ["root", "host", "exclude", "cache", "allow_field"], help_heading = "DNS")]
    pub dns: bool,
    /// Answers in a second to one /24 of IPv4, or /56 of IPv6; those beyond are left to the server, whose own rate limit decides.
    /// 0: no limit
    #[arg(long, value_name = "ANSWERS", default_value_t = 200, value_parser = clap::value_parser!(u32).range(0..=10_000_000), requires = "dns", help_heading = "DNS")]
    pub rate: u32,
    /// Clients that the kernel answers: those that the server itself has answered within `--firewall-interval` (known), or also
    /// those behind a gateway by which it has answered anybody, whose own addresses the firewall is not asked about (gateway)
    #[arg(long, value_name = "CLIENTS", default_value = "known", value_parser = ["known", "gateway"], requires = "dns", help_heading = "DNS")]
    pub clients: String,
    /// Questions to the server in a second, below its own rate limit for one client
    #[arg(long, value_name = "QUESTIONS", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100_000), requires = "dns", help_heading = "DNS")]
    pub ask_rate: u32,
    /// Seconds for which the server must have kept the order of several records before its answer is given in the kernel
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u32).range(0..=3600), requires = "dns", help_heading = "DNS")]
    pub settle: u32,
    /// Milliseconds from one look at a zone's serial to the next
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 40, value_parser = clap::value_parser!(u32).range(10..=100), requires = "dns", help_heading = "DNS")]
    pub poll: u32,
    /// File of the secret with which the server makes cookies (`cookie-secret` of NSD and BIND, 32 hexadecimal digits): clients
    /// that send such a cookie are answered in the kernel, and beyond `--rate`
    #[arg(long, value_name = "FILE", requires = "dns", help_heading = "DNS")]
    pub cookie_secret: Option<PathBuf>,
    /// Give answers of the kernel, with their questions, to the reader of dnstap that listens on this socket (`fstrm_capture`)
    #[arg(long, value_name = "SOCKET", requires = "dns", help_heading = "DNS")]
    pub dnstap: Option<PathBuf>,
    /// One in this many answers
    #[arg(long, value_name = "ANSWERS", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=1_000_000_000), requires = "dnstap", help_heading = "DNS")]
    pub dnstap_sample: u32,
    /// Serve metrics for Prometheus on this address, at /metrics
    #[arg(long, value_name = "ADDR:PORT", requires = "dns", help_heading = "DNS")]
    pub metrics: Option<SocketAddr>,
    /// Name by which clients call it; may be repeated [default: its addresses, and localhost]
    #[arg(long, value_name = "NAME")]
    pub host: Vec<String>,
    /// Extensions of the files to accelerate
    #[arg(long, value_name = "EXT,...", value_delimiter = ',', default_value = EXTENSIONS)]
    pub ext: Vec<String>,
    /// Leave this path and all below it to the server alone; may be repeated
    #[arg(long, value_name = "PATH")]
    pub exclude: Vec<String>,
    /// Answer in the kernel for this path and all below it, though no file stands behind the answers, as far as they
    /// may be kept (s-maxage, max-age, Expires); may be repeated
    #[arg(long, value_name = "PATH", value_parser = cached_path)]
    pub cache: Vec<String>,
    /// Look at this many URLs below `--cache` at most
    #[arg(long, value_name = "URLS", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=16384), requires = "cache")]
    pub cache_most: u32,
    /// Ask the server for a URL with a query when this many clients have asked for it; 1 where all clients come by one address, as
    /// behind a load balancer
    #[arg(long, value_name = "CLIENTS", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=64), requires = "cache")]
    pub cache_clients: u32,
    /// Time after which the server closes an idle connection, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=86400))]
    pub server_timeout: u32,
    /// Longest answer that the kernel gives, head and content, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 16_384, value_parser = clap::value_parser!(u64).range(Scope::ONE_SEGMENT as u64..=Scope::LONGEST as u64))]
    pub answer_max: u64,
    /// Longest answer, in bytes, where a request asks for the end of a connection without a socket (`--connections`); no less
    /// than `--answer-max`
    #[arg(long, value_name = "BYTES", default_value_t = 34_816, value_parser = clap::value_parser!(u64).range(Scope::ONE_SEGMENT as u64..=Scope::LONGEST as u64))]
    pub last_answer_max: u64,
    /// Let the server alone serve a connection after this many consecutive requests that the kernel could
    /// not answer; 0: never
    #[arg(long, value_name = "REQUESTS", default_value_t = afpa_bpf::BYPASS_AFTER, value_parser = clap::value_parser!(u32).range(0..=60000))]
    pub bypass_after: u32,
    /// Confirm each pinned answer with the server within this many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=86400))]
    pub revalidate: u32,
    /// Answer requests with this field, which matters to no answer of the server; may be repeated
    #[arg(long, value_name = "NAME")]
    pub allow_field: Vec<String>,
    /// Ask from this machine only, not as a stranger: pages that the server shows to this machine alone are then shown
    /// to everybody
    #[arg(long, action = ArgAction::SetTrue)]
    pub ask_only_locally: bool,
    /// Answer a client for this long after a packet of it got through the host's firewall and routes, in
    /// milliseconds; 0: for ever
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(0..=3_600_000))]
    pub firewall_interval: u32,
    /// Where connections begin: in the kernel's TCP (kernel), or without a socket, for one request a connection. Without
    /// one: those of clients that the kernel let in lately (known); also those of everyone whose way back is sure, while
    /// SYNs come in a flood (flood) or always (everyone). Always: the firewall of this host is not asked (Linux 6.9)
    #[arg(long, value_name = "CLIENTS", default_value = "kernel", value_parser = connections)]
    pub connections: Connections,
    /// Compare one in this many answers of the kernel with the server's, and answer nothing more when they differ; 0:
    /// none
    #[arg(long, value_name = "ANSWERS", default_value_t = 4096, value_parser = clap::value_parser!(u32).range(0..=10_000_000))]
    pub self_check: u32,
    /// Never refuse clients of this prefix; may be repeated
    #[arg(long, value_name = "PREFIX", value_parser = prefix, help_heading = "Clients")]
    pub allow: Vec<Prefix>,
    /// Drop the connections of clients of this prefix; may be repeated. The longest prefix wins
    #[arg(long, value_name = "PREFIX", value_parser = prefix, help_heading = "Clients")]
    pub deny: Vec<Prefix>,
    /// Drop the connections of clients of the prefixes in this file, one a line, which HUP reads again; may be repeated
    #[arg(long, value_name = "FILE", help_heading = "Clients")]
    pub deny_file: Vec<PathBuf>,
    /// New connections of one client (IPv6: of one /64) in a second; 0: no limit
    #[arg(long, value_name = "CONNECTIONS", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=Rate::MOST as i64), help_heading = "Clients")]
    pub client_connections_per_second: u32,
    /// How many of these may come at once
    #[arg(long, value_name = "CONNECTIONS", default_value_t = Limits::default().client_connections.burst, value_parser = clap::value_parser!(u32).range(1..=Rate::MOST as i64), help_heading = "Clients")]
    pub client_connections_burst: u32,
    /// New connections of all clients in a second; 0: no limit
    #[arg(long, value_name = "CONNECTIONS", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=Rate::MOST as i64), help_heading = "Clients")]
    pub connections_per_second: u32,
    /// How many of these may come at once
    #[arg(long, value_name = "CONNECTIONS", default_value_t = Limits::default().connections.burst, value_parser = clap::value_parser!(u32).range(1..=Rate::MOST as i64), help_heading = "Clients")]
    pub connections_burst: u32,
    /// Give the clients of these prefixes this per cent of `--connections-per-second`, whatever load other clients
    /// cause; may be repeated
    #[arg(long = "class", value_name = "NAME=PERCENT:PREFIX,...", value_parser = class, requires = "connections_per_second", help_heading = "Clients")]
    pub classes: Vec<Class>,
    /// Follow all symbolic links that stay within the directory, if the server does so too
    #[arg(long, action = ArgAction::SetTrue)]
    pub follow_links: bool,
    /// Become this user when everything is loaded; it must be able to read the files
    /// [default: www-data or nobody, if root]
    #[arg(short, long, value_name = "NAME")]
    pub user: Option<String>,
    /// Become this group [default: that of the user]
    #[arg(short, long, value_name = "NAME")]
    pub group: Option<String>,
}

/// `afpa detach`.
#[derive(Args, Debug)]
#[command(after_help = DETACH_EXAMPLES)]
pub struct Detach {
    /// Only from the server on this port [default: from all]
    #[arg(short, long, value_name = "PORT", conflicts_with = "listen")]
    pub port: Option<u16>,
    /// Only from the server with this address
    #[arg(short, long, value_name = "ADDR:PORT")]
    pub listen: Option<SocketAddr>,
    /// Seconds to wait for connections on which the kernel has answered
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub wait: u32,
    /// Break the connections that are left after that
    #[arg(long)]
    pub force: bool,
}

/// `afpa attach`: runs until a signal or `afpa detach` ends it.
///
/// # Errors
/// When the fast path cannot be had, or no server listens there.
pub fn attach(options: &Attach) -> anyhow::Result<()> {
    let identity = Identity::find(options.user.as_deref(), options.group.as_deref())?;
    let folder = control::prepare_folder(identity.as_ref())?;
    let owner = identity.as_ref().map(pin_dir_owner);
    let drop_rights: DropRights = Arc::new(move |step| drop_rights(identity.as_ref(), step));
    if options.dns {
        return afpa_attach::dns::run(dns_settings(options, folder), &drop_rights);
    }
    let Some(root) = options.root.clone() else { bail!("--root DIR is missing") };
    let (socketless, admission) = admission(options.connections);
    let settings = AttachSettings {
        listen: options.listen.clone(),
        root,
        hosts: options.host.clone(),
        scope: Scope {
            extensions: options.ext.iter().map(|ext| ext.to_ascii_lowercase()).collect(),
            excluded: options.exclude.clone(),
            longest: longest_answer(socketless, options.answer_max, options.last_answer_max)
                as usize,
        },
        answer_max: options.answer_max as usize,
        keeps: KeptScope {
            prefixes: options.cache.clone(),
            excluded: options.exclude.clone(),
            most: options.cache_most as usize,
            clients: options.cache_clients as usize,
        },
        symlinks: match options.follow_links {
            true => SymlinkPolicy::Always,
            false => SymlinkPolicy::OwnerMatch,
        },
        server_timeout: Duration::from_secs(options.server_timeout.into()),
        bypass_after: options.bypass_after,
        revalidate: Duration::from_secs(options.revalidate.into()),
        allowed_fields: options.allow_field.clone(),
        ask_only_locally: options.ask_only_locally,
        firewall_interval: Duration::from_millis(options.firewall_interval.into()),
        socketless,
        admission,
        self_check: options.self_check,
        answer_timeout: Duration::from_secs(5),
        folder,
        owner,
    };
    afpa_attach::run(settings, read_police(options)?, &drop_rights)
}

fn dns_settings(options: &Attach, folder: PathBuf) -> DnsSettings {
    DnsSettings {
        listen: options.listen.clone(),
        rate: options.rate,
        ask_rate: options.ask_rate,
        cookie_secret: options.cookie_secret.clone(),
        metrics: options.metrics,
        dnstap: options.dnstap.clone().map(|path| (path, options.dnstap_sample)),
        by_gateway: options.clients == "gateway",
        settle: Duration::from_secs(options.settle.into()),
        poll: Duration::from_millis(options.poll.into()),
        firewall_interval: Duration::from_millis(options.firewall_interval.into()),
        folder,
    }
}

fn drop_rights(identity: Option<&Identity>, step: Step) -> anyhow::Result<()> {
    let keep = match step {
        Step::Thread => return privileges::precede(identity),
        Step::Process(Rights::NetAdmin) => CapabilitySet::NET_ADMIN,
        Step::Process(Rights::None) | Step::ThreadAfterProcess => CapabilitySet::empty(),
    };
    match (step, identity) {
        (Step::Process(_), Some(identity)) => identity.assume(keep)?,
        _ => privileges::restrict(keep)?,
    }
    if let Err(error) = Confinement::begin_alone() {
        tracing::warn!(
            %error,
            "this process cannot be confined, and keeps rights that it does not need"
        );
    }
    Ok(())
}

/// Reads which clients may connect: from the options, and from the files that they name.
fn read_police(options: &Attach) -> anyhow::Result<ReadPolice> {
    let rate = |per_second, burst| Rate { per_second, burst };
    let limits = Limits {
        client_connections: rate(
            options.client_connections_per_second,
            options.client_connections_burst,
        ),
        connections: rate(options.connections_per_second, options.connections_burst),
        ..Limits::default()
    };
    for limited in [limits.client_connections, limits.connections] {
        if limited.seconds() > Rate::LONGEST_SECONDS {
            bail!(
                "a burst of {} takes more than an hour to come back at {} a second: lower it",
                limited.burst,
                limited.per_second
            );
        }
    }
    let classes = options.classes.clone();
    if let Some(why) = unfit_classes(&classes, limits.connections) {
        bail!("{why}");
    }
    let (allow, deny) = (options.allow.clone(), options.deny.clone());
    // Relative paths are those of the working directory, now.
    let files = options.deny_file.iter().map(std::path::absolute).collect::<Result<Vec<_>, _>>()?;
    Ok(Box::new(move || {
        let mut deny = deny.clone();
        deny.extend(prefixes_of_files(&files).map_err(anyhow::Error::msg)?);
        Ok(PoliceSettings { allow: allow.clone(), deny, limits, classes: classes.clone() })
    }))
}

fn cached_path(text: &str) -> Result<String, String> {
    let is_path = text.starts_with('/') && !text.contains(['?', '#']);
    is_path.then(|| text.to_owned()).ok_or_else(|| "write a path, such as /api".to_owned())
}

/// The fault of the classes, and the remedy.
fn unfit_classes(classes: &[Class], all: Rate) -> Option<String> {
    let sum: u32 = classes.iter().map(|class| u32::from(class.share)).sum();
    let mut names: Vec<_> = classes.iter().map(|class| class.name.as_str()).collect();
    names.sort_unstable();
    let same = names.windows(2).any(|two| two.first() == two.last());
    match classes.len() {
        0 => None,
        _ if !all.limits() => {
            Some("--class shares --connections-per-second, which has no limit: set it".to_owned())
        }
        _ if sum > 100 => {
            Some(format!("all --class together have {sum} per cent: lower them to 100"))
        }
        _ if same => Some("two --class have one name: give them two".to_owned()),
        count if count > Classes::MOST => {
            Some(format!("there are {count} --class: join some, to {} at most", Classes::MOST))
        }
        _ => None,
    }
}

/// `NAME=PERCENT:PREFIX,...`.
fn class(text: &str) -> Result<Class, String> {
    let form = || "write for example office=30:10.0.0.0/8,2001:db8::/32".to_owned();
    let (name, rest) = text.split_once('=').ok_or_else(form)?;
    let (share, prefixes) = rest.split_once(':').ok_or_else(form)?;
    let share = share.parse().ok().filter(|share| (1..=100).contains(share)).ok_or_else(form)?;
    if name.is_empty() || name == Classes::OTHERS {
        return Err(form());
    }
    let prefixes = prefixes.split(',').map(prefix).collect::<Result<_, _>>()?;
    Ok(Class { name: name.to_owned(), share, prefixes, listeners: Vec::new() })
}

fn prefix(text: &str) -> Result<Prefix, String> {
    text.parse().map_err(|why: NotAPrefix| format!("{why} ({})", why.remedy()))
}

/// `afpa detach`.
///
/// # Errors
/// When nothing is attached, or connections are left that would break.
pub fn detach(options: &Detach) -> anyhow::Result<()> {
    let done = afpa_attach::detach(&DetachSettings {
        port: options.port.or(options.listen.map(|listen| listen.port())),
        wait: Duration::from_secs(options.wait.into()),
        force: options.force,
        folders: control::all_folders(),
    })?;
    super::print(&done)
}

const EXTENSIONS: &str =
    "html,htm,css,js,mjs,json,xml,txt,svg,png,gif,jpg,jpeg,webp,avif,ico,woff,woff2,webmanifest";

const LISTEN_HELP: &str = "Address and port on which the server listens; 0.0.0.0 or [::] if on all; \
may be repeated, for several addresses with one port";

const ATTACH_EXAMPLES: &str = "\
Examples:
  afpa attach --listen 0.0.0.0:80 --root /var/www/html --host www.example.org --host example.org
  afpa attach --listen 0.0.0.0:80 --listen '[::]:80' --root /var/www/html
  afpa attach --listen '[::]:8080' --root site --ext html,css --exclude /private
  afpa attach --listen 0.0.0.0:80 --root /var/www/html --cache /api --cache /news
  afpa attach --dns --listen 192.0.2.1:53 --listen '[2001:db8::1]:53'

afpa asks the server for each file, and again when the file changes; the kernel sends these answers. The
server itself goes on to send answers that it marks as private, that it does not give to strangers, or that
are longer than --answer-max. Use --exclude for paths that it denies to single addresses only.

With --cache, what applications answer is kept as well, for as long as the answer says that a shared cache may
keep it. POST, PUT, DELETE and the like on a URL drop it, and so does `afpa purge URL`.

Signals:
  TERM, INT   stop answering now
  QUIT        the same, and wait for connections that need translation
  HUP         ask the server for everything again, as after a change of its configuration";

const DETACH_EXAMPLES: &str = "\
Examples:
  afpa detach
  afpa detach --port 80 --wait 5 --force";
