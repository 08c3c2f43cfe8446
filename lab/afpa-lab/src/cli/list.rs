//! `afpa-lab list`.

use std::path::PathBuf;

use afpa_generator::{families, generators};
use afpa_lab::bed::BedPlan;
use afpa_lab::{servers, whitebox};
use clap::Args;

use super::papers::programs;

/// Name workloads, servers, generators and beds, and what this machine lacks for each.
#[derive(Debug, Args)]
pub(super) struct List {
    /// The afpa program [default: beside this one]
    #[arg(long, value_name = "FILE")]
    afpa: Option<PathBuf>,
}

impl List {
    pub(super) fn run(&self) {
        println!("workloads");
        families().iter().for_each(|(name, about)| line(name, about, None));
        println!("\nservers");
        for server in servers::all(&programs(self.afpa.as_deref())) {
            line(server.name(), server.about(), server.lacks());
        }
        println!("\ngenerators");
        for generator in generators() {
            line(generator.name(), generator.about(), generator.lacks());
        }
        println!("\nbeds");
        BedPlan::ALL.iter().for_each(|(name, about)| line(name, about, None));
        println!("\nfor everything");
        let lacks = afpa_netlab::missing_privilege();
        line("test bed", "two network namespaces and what lies between", lacks);
        line("white box", "system calls and context switches a request", whitebox::missing());
        let counters = (!whitebox::hardware_counters()).then(|| "this machine has none".to_owned());
        line("counters", "instructions a request", counters);
    }
}

fn line(name: &str, about: &str, lacks: Option<String>) {
    println!("  {name:<20} {about}");
    if let Some(reason) = lacks {
        println!("  {:<20} NOT HERE: {reason}", "");
    }
}
