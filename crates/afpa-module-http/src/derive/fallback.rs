//! A request that leaves the helper thread for a server group, because its path is no file.

use afpa_framework::{Finished, Now, Outbox, Persistence, Table};
use afpa_http::{FieldSlots, Status, request::Said};
use afpa_router::Fallback;

use super::kept::{self, Kept};
use super::miss::{Distributing, asked_or};
use super::{Http, HttpConnection};
use crate::asked::KeptRequest;
use crate::remote::{Distributed, Remote};
use crate::script::{Run, Script};
use crate::uncached::KeptFallback;

impl<T: Table> Http<T> {
    /// Sends the request to its servers, or answers it from what the shared cache has kept of theirs.
    pub(super) fn ask_servers(
        &mut self,
        connection: &mut HttpConnection,
        request: KeptRequest,
        (kept, script): (Box<KeptFallback>, Option<Script>),
        (now, must_close): (Now, bool),
        out: &mut Outbox,
    ) -> Finished<Remote> {
        let Self { responses, keys, responder, core, .. } = self;
        let KeptFallback { global, fallback, scripts, scope: (site, set) } = *kept;
        let mut slots = FieldSlots::default();
        let parsed = request.parse(&mut slots);
        let run = scripts.as_deref().zip(script.as_ref());
        let servers = match (run, fallback) {
            (Some((scripts, _)), _) => Some((scripts.group, scripts.affinity)),
            (None, Some(Fallback::Distributed { group, affinity })) => Some((group, affinity)),
            (None, _) => None,
        };
        let (Some(parsed), Some((group, affinity))) = (parsed, servers) else {
            let (said, status) = (Said::in_head(&request.head), Status::INTERNAL_SERVER_ERROR);
            responder.refuse(request.client, said, status, now, out);
            return Finished::Answered(Persistence::Close);
        };
        let asked = request.asked(&parsed, "afpa", (now, must_close));
        let mut spelled = Vec::new();
        let to = Distributed::whole((site, group, affinity), &parsed, &mut spelled);
        let to = Distributed { script: run.map(|(scripts, script)| Run { scripts, script }), ..to };
        let client = (connection.client, request.tls.as_deref(), now);
        let mut plan = None;
        if let Some(view) = responses
            && let Some(mut lookup) = global.shared_request(&parsed, (&to, set), client)
        {
            lookup.names_client |= asked.is_personal();
            match kept::look_up((view, keys), lookup, asked, responder, out) {
                Kept::Answered(persistence) => {
                    return asked_or(asked, &request.head, &global, responder, persistence);
                }
                Kept::Instead(status) => {
                    let persistence = responder.page(asked, status, out);
                    return asked_or(asked, &request.head, &global, responder, persistence);
                }
                Kept::Ask(asks) => plan = asks,
            }
        }
        let head = &request.head;
        let (codings, settings) =
            (global.codings.of(Some(set)), global.exchanges.of(Some(set), group));
        let (global, mirror) = (&global, global.mirrors.of(Some(set)));
        let distributing = Distributing {
            asked,
            head,
            plan,
            codings,
            settings,
            mirror,
            peer: None,
            global,
            responder,
            core,
        };
        distributing.respond(to, connection, out)
    }
}
