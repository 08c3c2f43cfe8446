//! The report as one page, for people who would rather look than read: figures inside, no scripts,
//! nothing fetched from elsewhere.

use super::losses::losses;
use super::words::last_lines;
use super::{findings, tables};
use crate::figures::{Figure, escape};
use crate::results::{Addition, Results};
use crate::summary::Summary;

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;color:#23262b;background:#f6f4ef;\
    margin:0 auto;padding:2rem 1rem;max-width:60rem}h1{font-size:1.7rem}h2{margin-top:2.5rem}\
    h3{font-size:1rem;margin:1.6rem 0 .4rem}figure{margin:1.5rem 0}figure svg{width:100%;height:auto}\
    figcaption,.soft{color:#6b6f76;font-size:.9rem}.wide{overflow-x:auto}\
    table{border-collapse:collapse;font-size:.85rem;background:#fff;white-space:nowrap}\
    td,th{padding:.25rem .6rem;border-bottom:1px solid #e4e0d6;text-align:right;\
    font-variant-numeric:tabular-nums}td:first-child,th:first-child{text-align:left}\
    table.text td,table.text th{white-space:normal;text-align:left;vertical-align:top}\
    tr.us td{font-weight:650}\
    code{font-size:.8rem;overflow-wrap:anywhere}.ratios li{font-variant-numeric:tabular-nums}";

/// The whole page.
pub(super) fn page(
    results: &Results,
    summary: &Summary,
    figures: &[Figure],
    notes: &str,
) -> String {
    let environment = &results.environment;
    let mut text = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\"><title>The lab's report</title>\
         <style>{STYLE}</style></head><body>\n<h1>AFPA and its peers on the papers' workloads</h1>\
         <p class=\"soft\">{}<br>{}</p>\n",
        escape(&environment.time),
        escape(&environment.line())
    );
    text += &list("ratios", &last_lines(results));
    text += &method(results);
    text += "<h2>Where AFPA loses</h2>\n";
    text += &list("ratios", &losses(results, summary));
    if let Some((count, rows)) = findings::judged(results, summary) {
        let table = sentences(&findings::HEAD.map(str::to_owned), &rows);
        text += &format!("<h2>{}</h2>\n<p>{count}</p>\n{table}", findings::HEADING);
    }
    text += &paragraphs(notes);
    text += "<h2>Figures</h2>\n";
    for figure in figures {
        text += &format!(
            "<figure>{}<figcaption>{}</figcaption></figure>\n",
            figure.svg,
            escape(&figure.caption)
        );
    }
    text += "<h2>Tables</h2>\n";
    for table in tables::all(results, summary) {
        text += &format!("<h3>{}</h3>\n", escape(&table.heading));
        text += &rows(&table.head, &table.rows, &summary.subject);
        text += &list("soft", &table.notes);
    }
    if !results.left_out.is_empty() {
        text += &format!("<h2>Left out, or failed</h2>\n{}", list("", &results.left_out));
    }
    text += &servers(results);
    text + "</body></html>\n"
}

/// The headings and paragraphs of the notes; no more of Markdown than that.
fn paragraphs(notes: &str) -> String {
    let blocks = notes.split("\n\n").map(str::trim).filter(|block| !block.is_empty());
    let shown = blocks.map(|block| match block.trim_start_matches('#') {
        heading if heading.len() < block.len() => {
            format!("<h3>{}</h3>\n", escape(heading.trim()))
        }
        words => format!("<p>{}</p>\n", escape(words)),
    });
    shown.collect()
}

fn method(results: &Results) -> String {
    let beds = results.method.beds.iter().map(|(name, bed)| format!("bed {name}: {}", bed.about));
    let mut lines: Vec<String> = beds.collect();
    lines.push(format!("{} interleaved rounds", results.method.rounds));
    lines.extend(results.method.additions.iter().map(Addition::words));
    list("soft", &lines)
}

fn servers(results: &Results) -> String {
    let mut text = "<h2>Servers</h2>\n<ul>".to_owned();
    for server in &results.servers {
        text += &format!(
            "<li><b>{}</b>: {}. {}<br><code>{}</code></li>\n",
            escape(&server.name),
            escape(&server.about),
            escape(&server.version),
            escape(&server.command)
        );
    }
    text + "</ul>\n"
}

/// A table of sentences.
fn sentences(head: &[String], rows: &[Vec<String>]) -> String {
    self::rows(head, rows, "").replacen("<table>", "<table class=\"text\">", 1)
}

/// A table of figures; the row of the subject stands out.
fn rows(head: &[String], rows: &[Vec<String>], subject: &str) -> String {
    let cells = |tag: &str, cells: &[String]| -> String {
        cells.iter().map(|text| format!("<{tag}>{}</{tag}>", escape(text))).collect()
    };
    let mut text = format!("<div class=\"wide\"><table><tr>{}</tr>\n", cells("th", head));
    for row in rows {
        let ours = row.first().is_some_and(|name| name == subject);
        let class = if ours { " class=\"us\"" } else { "" };
        text += &format!("<tr{class}>{}</tr>\n", cells("td", row));
    }
    text + "</table></div>\n"
}

fn list(class: &str, lines: &[String]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let items: String = lines.iter().map(|line| format!("<li>{}</li>\n", escape(line))).collect();
    format!("<ul class=\"{class}\">{items}</ul>\n")
}
