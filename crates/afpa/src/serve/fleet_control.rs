//! The operations of the fleet on the control socket: each is done here at once, and then sent to all machines. How far
//! these are is a question of its own, so that none keeps the socket waiting.

use std::sync::Arc;

use afpa_fleet::{Asked, Files, FleetView, LONGEST_FILES, Order};
use afpa_framework::{Arguments, Control, Operation, Refusal, Reply};
use serde_json::json;

use super::observe::Observed;

/// The operations of one request.
pub(super) struct FleetOperations<'o> {
    pub(super) fleet: Arc<FleetView>,
    pub(super) observed: &'o Arc<Observed>,
    /// The content of the request.
    pub(super) content: &'o [u8],
}

const OPERATIONS: &[Operation] = &[
    Operation::look("fleet", "", "the members of the fleet, as JSON"),
    Operation::look("fleet/order", "number=NUMBER", "how far the fleet is with an order, as JSON"),
    Operation::change(
        "fleet/purge",
        "path=PATH|host=NAME|tag=TAG|group=GROUP [query=QUERY] [below=yes] [soft=yes]",
        "drops kept answers on every machine",
    ),
    Operation::change(
        "fleet/deny/add",
        "prefix=PREFIX",
        "refuses the clients of a prefix everywhere",
    ),
    Operation::change("fleet/deny/del", "prefix=PREFIX", "takes such an order back everywhere"),
    Operation::change("fleet/push", "", "checks the files in the content, and rolls them out"),
    Operation::change("fleet/rollback", "[revision=NUMBER]", "goes back to a revision everywhere"),
    Operation::look("fleet/outcome", "number=NUMBER", "the outcome of such an order, as JSON"),
];

impl Control for FleetOperations<'_> {
    fn operations(&self) -> &'static [Operation] {
        OPERATIONS
    }

    fn call(&self, name: &str, arguments: &Arguments<'_>) -> Result<Reply, Refusal> {
        match name {
            "fleet" => json_of(&self.fleet.look()),
            "fleet/order" => self.order(arguments),
            "fleet/purge" => self.purge(arguments),
            "fleet/deny/add" => self.deny(arguments, true),
            "fleet/deny/del" => self.deny(arguments, false),
            "fleet/push" => self.push(),
            "fleet/rollback" => {
                let revision = arguments.text("revision").map(|text| text.parse());
                let revision = revision.transpose();
                self.ask(Asked::RollBack(revision.map_err(|_| {
                    Refusal::Invalid("a revision is a number of `afpa fleet revisions`".to_owned())
                })?))
            }
            "fleet/outcome" => {
                let number = number(arguments)?;
                json_of(&self.fleet.outcome(number).ok_or_else(|| absent(number))?)
            }
            _ => Err(Refusal::Failed),
        }
    }
}

impl FleetOperations<'_> {
    fn order(&self, arguments: &Arguments<'_>) -> Result<Reply, Refusal> {
        let number = number(arguments)?;
        json_of(&self.fleet.order(number).ok_or_else(|| absent(number))?)
    }

    fn push(&self) -> Result<Reply, Refusal> {
        let files = Files::decode(self.content).map_err(|_| {
            Refusal::Invalid(format!(
                "these are no files of at most {} KiB together: give them to `afpa fleet push`",
                LONGEST_FILES / 1024
            ))
        })?;
        self.ask(Asked::Push(Arc::new(files)))
    }

    /// An order about the configuration does not wait for servers: it would come as a surprise.
    fn ask(&self, asked: Asked) -> Result<Reply, Refusal> {
        let look = self.fleet.look();
        if look.configuration.is_none() {
            let why = "this machine takes no configuration of the fleet: write `configuration = true` in [fleet]";
            return Err(Refusal::Invalid(why.to_owned()));
        }
        let number = self.fleet.ask(asked).ok_or_else(|| {
            Refusal::Invalid("no server of the fleet can be reached: try again later".to_owned())
        })?;
        Ok(Reply::json(json!({ "number": number }).to_string()))
    }

    fn purge(&self, arguments: &Arguments<'_>) -> Result<Reply, Refusal> {
        let global = Arc::clone(&self.observed.serving.load().global);
        let Reply { content, .. } = global.call("purge", arguments)?;
        let text = arguments.as_text().ok_or(Refusal::Failed)?;
        let order = Order::Purge { arguments: text.to_owned() };
        let sent = self.send(order, &String::from_utf8_lossy(&content));
        if self.fleet.peers().is_some() {
            // Until the order waits, another machine may have been asked for what it has not dropped.
            global.call("purge", arguments)?;
        }
        sent
    }

    /// An order to purge that is for this machine alone is for all where they ask one another. `None`: they do not.
    pub(super) fn purge_everywhere(
        &self,
        arguments: &Arguments<'_>,
    ) -> Option<Result<Reply, Refusal>> {
        self.fleet.peers()?;
        let global = Arc::clone(&self.observed.serving.load().global);
        let done = global.call("purge", arguments);
        Some(done.and_then(|here| self.purge(arguments).map(|_| here)))
    }

    /// An order that changes nothing here may change something elsewhere.
    fn deny(&self, arguments: &Arguments<'_>, denied: bool) -> Result<Reply, Refusal> {
        let given = arguments.text("prefix");
        let prefix = given.as_deref().and_then(|given| given.parse::<afpa_police::Prefix>().ok());
        let done = self.observed.police.order(given.as_deref(), denied);
        let Some(prefix) = prefix else {
            return Err(Refusal::Invalid(done.err().unwrap_or_else(|| "no prefix".to_owned())));
        };
        let (Ok(here) | Err(here)) = &done;
        tracing::info!("{here}, and the fleet is told");
        self.send(Order::Deny { prefix: prefix.to_string(), denied }, here)
    }

    fn send(&self, order: Order, here: &str) -> Result<Reply, Refusal> {
        let number = self.fleet.send(order).map_err(|full| Refusal::Invalid(full.to_string()))?;
        Ok(Reply::json(json!({ "number": number, "here": here.trim_end() }).to_string()))
    }
}

fn number(arguments: &Arguments<'_>) -> Result<u64, Refusal> {
    let number = arguments.text("number").and_then(|number| number.parse().ok());
    number.ok_or_else(|| Refusal::Invalid("this needs number=NUMBER".to_owned()))
}

/// No order of this process has that number, or it was long ago.
fn absent(number: u64) -> Refusal {
    Refusal::Absent(format!(
        "there is no order {number}: if afpa was started again since it was given, give it again"
    ))
}

fn json_of(value: &impl serde::Serialize) -> Result<Reply, Refusal> {
    serde_json::to_string(value).map(Reply::json).map_err(|_| Refusal::Failed)
}
