//! The report as Markdown: README.md of the folder of results.

use super::losses::losses;
use super::words::last_lines;
use super::{findings, tables};
use crate::figures::Figure;
use crate::results::Results;
use crate::summary::Summary;

/// The whole file.
pub(super) fn page(
    results: &Results,
    summary: &Summary,
    figures: &[Figure],
    notes: &str,
    no_png: Option<&str>,
) -> String {
    let mut text =
        format!("# The lab's report, {}\n\n{}\n", results.environment.time, setting(results));
    text += "\n## In short\n\n";
    text.extend(last_lines(results).iter().map(|line| format!("- {line}\n")));
    text += "\nA ratio is the median of the rounds' own ratios, in brackets their lowest and highest; \
             of the beds, the one that is least favourable to the first server is quoted.\n";
    text += "\n## Where AFPA loses\n\n";
    match losses(results, summary).as_slice() {
        [] => text += "Against no server that people run, at no load.\n",
        lines => text.extend(lines.iter().map(|line| format!("- {line}\n"))),
    }
    if let Some((count, rows)) = findings::judged(results, summary) {
        let head = findings::HEAD.join(" | ");
        let rule = "---|".repeat(findings::HEAD.len());
        text += &format!("\n## {}\n\n{count}\n\n| {head} |\n|{rule}\n", findings::HEADING);
        text.extend(rows.iter().map(|row| format!("| {} |\n", row.join(" | "))));
    }
    if !notes.trim().is_empty() {
        text += &format!("\n{}\n", notes.trim());
    }
    text += "\n## Figures\n";
    for figure in figures {
        text += &format!("\n![{0}](figures/{1}.svg)\n\n{0}\n", figure.caption, figure.name);
    }
    if let Some(reason) = no_png {
        text += &format!("\n{reason}\n");
    }
    text += "\n## Tables\n\nCost is the server core's time a request, by /proc/stat. Letters mark \
             figures that are not the server's alone.\n";
    for table in tables::all(results, summary) {
        text += &format!("\n### {}\n\n{}", table.heading, table.markdown());
    }
    text += &left_out(results);
    text += &servers(results);
    text += &workloads(results);
    text + &environment(results)
}

fn setting(results: &Results) -> String {
    let method = &results.method;
    let mut text = format!(
        "{}. {} interleaved rounds; before each measurement {} s of load; the order of the servers \
         rotates. Each server has one core, the generator the other. `{}`\n",
        results.environment.line(),
        method.rounds,
        method.warm_up,
        method.command
    );
    for addition in &method.additions {
        text += &format!("\n{}\n", addition.words());
    }
    for (name, bed) in &method.beds {
        text += &format!(
            "\n- bed *{name}*: {}; server on core {}, client on core {}; {}; offloads {}",
            bed.about, bed.server_core, bed.client_core, bed.congestion, bed.offloads
        );
    }
    text + "\n"
}

fn left_out(results: &Results) -> String {
    if results.left_out.is_empty() {
        return String::new();
    }
    let lines: String = results.left_out.iter().map(|line| format!("- {line}\n")).collect();
    format!("\n## Left out, or failed\n\n{lines}")
}

fn servers(results: &Results) -> String {
    let mut text = "\n## Servers\n".to_owned();
    for server in &results.servers {
        text += &format!("\n- **{}**: {}. {}.", server.name, server.about, server.version);
        if let Some(path) = &server.configuration {
            text += &format!(" [configuration]({})", path.display());
        }
        text += &format!("\n  `{}`", server.command.replace('`', "'"));
    }
    text + "\n"
}

fn workloads(results: &Results) -> String {
    let mut text = "\n## Workloads and generators\n".to_owned();
    let mut told: Vec<&str> = Vec::new();
    for workload in results.workloads.values() {
        if !told.contains(&workload.about.as_str()) {
            text += &format!("\n- **{}**: {}", workload.family, workload.about);
            told.push(&workload.about);
        }
    }
    for (name, about) in &results.generators {
        text += &format!("\n- generator **{name}**: {about}");
    }
    text + "\n"
}

fn environment(results: &Results) -> String {
    let found = &results.environment;
    let mut text = format!(
        "\n## Environment\n\n- {}\n- {}\n- memory: {} MB; load at the start: {}\n- commit: {}\n\
         - hardware counters: {}\n",
        found.line(),
        found.kernel_build,
        found.memory >> 20,
        found.load,
        found.commit.as_deref().unwrap_or("unknown"),
        if found.hardware_counters { "yes" } else { "none: instructions cannot be counted" },
    );
    text.extend(found.mitigations.iter().map(|line| format!("- {line}\n")));
    text += "- settings of the machine (the beds' congestion control is above):\n";
    text.extend(found.settings.iter().map(|(name, value)| format!("  - {name} = {value}\n")));
    text
}
