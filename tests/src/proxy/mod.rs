//! The surroundings of the proxy in its tests: unmodified servers, and clients that lose nothing.

mod backend;
mod names;
mod php;
mod raw;
mod resetting;
mod traffic;

use afpa_testkit::Server;
pub use backend::{Backend, Kind};
pub use names::Names;
pub use php::PhpFpm;
pub use raw::{Raw, answer, end, read_content, read_head, switched};
pub use resetting::resetting;
use serde_json::Value;
pub use traffic::{Sample, Traffic};

/// A configuration with one site that distributes everything to the group `app`, whose table
/// continues with `settings`: keys first, then tables of the group, for example
/// `[server_group.health]`.
pub fn configuration(
    listen: &impl std::fmt::Display,
    servers: &[String],
    settings: &str,
) -> String {
    let servers = servers.iter().map(|server| match server.starts_with('{') {
        true => server.clone(),
        false => format!("\"{server}\""),
    });
    let servers: Vec<_> = servers.collect();
    format!(
        "[[server_group]]\nname = \"app\"\nservers = [{}]\n{settings}\n\n\
         [[site]]\nlisten = [\"{listen}\"]\nto = \"app\"\n",
        servers.join(", ")
    )
}

/// A proxy before these servers.
#[track_caller]
pub fn proxy(servers: &[String], settings: &str) -> Server {
    Server::start("/", |launch| {
        launch.written(|listen| configuration(listen, servers, settings)).admin();
    })
}

/// The row of a server in `afpa stats --json`, by a part of its name.
///
/// # Panics
/// When there is none.
#[track_caller]
pub fn server_row(server: &Server, name: &str) -> Value {
    let output = server.command(&["stats", "--json"]);
    let stats: Value = serde_json::from_slice(&output.stdout).expect("statistics");
    let rows = stats["servers"].as_array().expect("a table of servers");
    let row = rows.iter().find(|row| row["server"].as_str().is_some_and(|s| s.contains(name)));
    row.unwrap_or_else(|| panic!("no server {name} in {rows:?}")).clone()
}

/// Its state.
#[track_caller]
pub fn state(server: &Server, name: &str) -> String {
    server_row(server, name)["state"].as_str().unwrap_or_default().to_owned()
}
