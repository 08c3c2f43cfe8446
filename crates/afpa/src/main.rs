//! `afpa`: parse the command line, run the command, turn its result into an exit status.

use std::process::ExitCode;

use afpa::cli::{Cli, Command, SHORT_HELP};
use afpa::{commands, keys, upgrade};
use clap::Parser;

fn main() -> ExitCode {
    afpa_say::begin();
    let name = std::env::args_os().next().unwrap_or_default();
    // Processes of AFPA's own, which nobody starts by hand.
    let outcome = if name == keys::PROCESS {
        keys::answer().map(|()| ExitCode::SUCCESS)
    } else if name == upgrade::PROCESS {
        upgrade::wait_for_order().map(|()| ExitCode::SUCCESS)
    } else {
        run(Cli::parse())
    };
    match outcome {
        Ok(code) => code,
        Err(error) => commands::report(&error),
    }
}

fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    let outcome = match cli.command {
        Some(Command::Serve(options)) => return commands::serve(&options),
        Some(Command::Proxy(options)) => return commands::serve(&(*options).into()),
        Some(Command::Route(options)) => return commands::route::route(&options),
        Some(Command::Doctor(options)) => return commands::doctor::doctor(&options),
        Some(Command::Adapt(options)) => return commands::adapt::adapt(&options),
        Some(Command::Explain(options)) => {
            commands::explain::explain(&options).and_then(|text| commands::print(&text))
        }
        Some(Command::Check(options)) => commands::check(&options),
        Some(Command::Health(options)) => commands::health(&options),
        Some(Command::Stats(options)) => commands::stats(&options),
        Some(Command::Top(options)) => commands::top::top(&options),
        Some(Command::Purge(options)) => commands::purge(&options),
        Some(Command::Server(options)) => commands::server(&options),
        Some(Command::Deny(options)) => commands::deny(&options),
        Some(Command::Fleet(options)) => commands::fleet(&options),
        Some(Command::Call(options)) => commands::call(&options),
        Some(Command::Attach(options)) => commands::attach::attach(&options),
        Some(Command::Detach(options)) => commands::attach::detach(&options),
        Some(Command::Pause(options)) => commands::pause::pause(&options),
        Some(Command::Resume(options)) => commands::pause::resume(&options),
        Some(Command::Completions(options)) => commands::completions(&options),
        Some(Command::Man(options)) => commands::man(&options),
        None => commands::print(SHORT_HELP),
    };
    outcome.map(|()| ExitCode::SUCCESS)
}
