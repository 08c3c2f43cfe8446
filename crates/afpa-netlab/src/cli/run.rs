//! `afpa-netlab run`.

use std::process::{Command, exit};

use afpa_netlab::{Bed, BedOptions, Offloads, Path, Steering};
use anyhow::{Context, Result};
use clap::Args;

use super::inject::{ImpairmentWords, print_counts};

/// Set a bed up, run a command in its client's namespace and remove the bed. The command finds
/// the server's addresses in AFPA_SERVER_V4 and AFPA_SERVER_V6 and the names of the namespaces,
/// for `ip netns exec`, in AFPA_CLIENT_NETNS and AFPA_SERVER_NETNS.
#[derive(Debug, Args)]
pub(super) struct Run {
    /// A shell command to run in the server's namespace meanwhile.
    #[arg(long)]
    server: Option<String>,
    /// Put the injector between the two sides, with the rules that follow.
    #[arg(long)]
    inject: bool,
    #[command(flatten)]
    impairment: ImpairmentWords,
    /// Switch checksum and segmentation offload off (with --inject they always are).
    #[arg(long)]
    no_offloads: bool,
    /// Steer packet work to core 0 for the server and to core 1 for the client.
    #[arg(long)]
    steer: bool,
    /// The command and its arguments.
    #[arg(last = true, required = true)]
    command: Vec<String>,
}

impl Run {
    pub(super) fn run(self) -> Result<()> {
        let path = match (self.inject, self.no_offloads) {
            (true, _) => Path::Through(Box::new(self.impairment.rules())),
            (false, true) => Path::Direct(Offloads::NONE),
            (false, false) => Path::Direct(Offloads::CARD),
        };
        let steering = match self.steer {
            true => Steering::Cores { server: 0, client: 1 },
            false => Steering::Unsteered,
        };
        let bed = Bed::create(&BedOptions { path, steering, ..BedOptions::default() })?;
        let mut server = match &self.server {
            Some(script) => Some(
                told(bed.server().command("sh"), &bed)
                    .args(["-c", &format!("exec {script}")])
                    .spawn()
                    .context("cannot start the server")?,
            ),
            None => None,
        };
        let (program, arguments) = self.command.split_first().context("a command")?;
        let status = told(bed.client().command(program), &bed).args(arguments).status()?;
        if let Some(injector) = bed.injector() {
            print_counts(injector.counts())?;
        }
        drop(bed);
        if let Some(server) = &mut server {
            server.wait()?;
        }
        if status.success() { Ok(()) } else { exit(status.code().unwrap_or(1)) }
    }
}

fn told(mut command: Command, bed: &Bed) -> Command {
    command
        .env("AFPA_SERVER_V4", Bed::SERVER_V4.to_string())
        .env("AFPA_SERVER_V6", Bed::SERVER_V6.to_string())
        .env("AFPA_CLIENT_NETNS", bed.client().name())
        .env("AFPA_SERVER_NETNS", bed.server().name());
    command
}
