//! TLS to the servers of groups.

use std::path::Path;

use afpa_config::{Config, GroupTls, read_authorities};
use afpa_proxy::pool::TlsToServers;
use afpa_tls::machine::ServerName;
use afpa_tls::{ClientSettings, ClientTls, Verify};
use anyhow::Context as _;

use crate::keys::{KeyReader, Version};

/// TLS to the server groups of the running configuration. A group that stays as it is keeps its entry, and with it its
/// sessions and idle connections.
#[derive(Default)]
pub(super) struct TlsOfGroups {
    made: Vec<(GroupTls, Vec<Option<Version>>, TlsToServers)>,
}

impl TlsOfGroups {
    /// How the servers of each group are reached; `None`: without TLS.
    ///
    /// # Errors
    /// With the file that cannot be used.
    pub(super) fn prepare(
        &mut self,
        config: &Config,
        reader: &KeyReader,
    ) -> anyhow::Result<Vec<Option<TlsToServers>>> {
        let mut groups = Vec::with_capacity(config.groups.len());
        for group in &config.groups {
            let found = group.tls.as_ref().map(|settings| {
                let name = &group.settings.name;
                self.of_group(settings, reader).with_context(|| format!("server group \"{name}\""))
            });
            groups.push(found.transpose()?);
        }
        self.made.retain(|(_, _, made)| groups.iter().flatten().any(|used| used == made));
        Ok(groups)
    }

    fn of_group(
        &mut self,
        settings: &GroupTls,
        reader: &KeyReader,
    ) -> anyhow::Result<TlsToServers> {
        let own = settings.own.as_ref().map(|(chain, key)| [chain, key]);
        let files = settings.authorities.iter().chain(own.into_iter().flatten());
        let versions: Vec<_> = files.map(|path| reader.version(path)).collect();
        let made = self.made.iter().find(|(of, then, _)| of == settings && *then == versions);
        if let Some((_, _, made)) = made {
            return Ok(made.clone());
        }
        let made = make(settings, reader)?;
        self.made.push((settings.clone(), versions, made.clone()));
        Ok(made)
    }
}

fn make(settings: &GroupTls, reader: &KeyReader) -> anyhow::Result<TlsToServers> {
    let (verify, system) = match &settings.authorities {
        Some(path) => (Verify::Authorities(read_authorities(path)?), Vec::new()),
        None => (Verify::System, rustls_native_certs::load_native_certs().certs),
    };
    let read = |path: &Path| reader.read(path).with_context(|| path.display().to_string());
    let own = match &settings.own {
        Some((chain, key)) => Some((read(chain)?, read(key)?)),
        None => None,
    };
    let protocols = vec![b"http/1.1".to_vec()];
    let mut client = ClientSettings { verify, own, protocols, ..ClientSettings::default() };
    let tls = ClientTls::new(&client, &system)?;
    client.protocols.insert(0, b"h2".to_vec());
    let http2 = ClientTls::new(&client, &system)?;
    let name = settings.name.clone().map(ServerName::try_from).transpose()?;
    Ok(TlsToServers { tls, http2, name })
}
