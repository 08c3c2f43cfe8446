//! `afpa-lab ask`.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use afpa_generator::{ClientSetup, Generator, Http3, Load, Object, Workload, generators};
use afpa_netlab::CoreTimes;
use anyhow::{Context, Result, ensure};
use clap::Args;

/// Ask one server for given files, at a rate (open loop) or as fast as it answers: sockets, every byte
/// compared; or HTTP/3. Runs in the network namespace it is started in; prints JSON. Fails when an answer was wrong.
#[derive(Debug, Args)]
pub(super) struct Ask {
    /// The server
    #[arg(long, required_unless_present = "make")]
    to: Option<SocketAddr>,
    /// Make the files below this directory, and ask nobody
    #[arg(long, value_name = "DIR", conflicts_with = "to")]
    make: Option<PathBuf>,
    /// A file to ask for, as WEIGHT:SIZE:PATH; may be repeated
    #[arg(long = "object", required = true, value_parser = part)]
    objects: Vec<(u32, Object)>,
    /// Connections at once
    #[arg(long, default_value_t = 64)]
    connections: u32,
    /// Requests a second that come whether or not they are answered [default: closed loop]
    #[arg(long)]
    rate: Option<f64>,
    /// Length of the measurement
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// Load before the measurement, in seconds
    #[arg(long, default_value_t = 0.3)]
    warm_up: f64,
    /// Tell what this core did meanwhile; may be repeated
    #[arg(long, value_name = "CORE")]
    watch: Vec<usize>,
    /// By HTTP/3, of a server that has this certificate (PEM)
    #[arg(long, value_name = "FILE", conflicts_with = "rate")]
    http3: Option<PathBuf>,
    /// The name in the certificate
    #[arg(long, value_name = "NAME", default_value = "localhost", requires = "http3")]
    name: String,
    /// Requests that a connection of HTTP/3 has open at once
    #[arg(long, value_name = "N", default_value_t = 1, requires = "http3")]
    streams: u32,
    /// A connection of HTTP/3 for each request
    #[arg(long, requires = "http3")]
    once: bool,
    /// By X25519MLKEM768, and not by X25519
    #[arg(long, requires = "http3")]
    post_quantum: bool,
}

impl Ask {
    pub(super) fn run(self) -> Result<()> {
        let workload = Workload::given(self.objects.clone());
        match (&self.make, self.to) {
            (Some(root), _) => workload.make_files(root),
            (None, Some(to)) => self.ask(to, &workload),
            (None, None) => Ok(()),
        }
    }

    fn ask(&self, to: SocketAddr, workload: &Workload) -> Result<()> {
        let load = Load {
            connections: self.connections,
            warm_up: Duration::try_from_secs_f64(self.warm_up)?,
            duration: Duration::try_from_secs_f64(self.seconds)?,
            persistent: !self.once,
            rate: self.rate,
        };
        // One client address, which the kernel chooses; sockets use nothing else of the setup.
        let any = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        let client = ClientSetup {
            to,
            interface: String::new(),
            first_source: any,
            sources: 1,
            core: 0,
            answers_at_once: false,
            ages: false,
        };
        let generator = self.generator()?;
        generator.can(workload, &load).map_err(anyhow::Error::msg)?;

        let mut samples = Vec::with_capacity(2);
        let look = || self.watch.iter().map(|core| CoreTimes::of_core(*core)).collect();
        let measured = generator.run(&client, workload, &load, &mut || samples.push(look()))?;
        let samples = samples.into_iter().collect::<Result<Vec<Vec<CoreTimes>>>>()?;
        let [before, after] = &samples[..] else { anyhow::bail!("two samples are taken") };
        let cores: Vec<CoreTimes> = after.iter().zip(before).map(|(a, b)| *a - *b).collect();
        println!("{}", serde_json::json!({ "measured": measured, "cores": cores }));
        let first = measured.complaints.first().map_or("", String::as_str);
        ensure!(measured.errors == 0, "{} errors: {first}", measured.errors);
        Ok(())
    }
}

impl Ask {
    fn generator(&self) -> Result<Box<dyn Generator>> {
        let Some(file) = &self.http3 else {
            let mut all = generators().into_iter();
            return all.find(|one| one.name() == "socket").context("the generator");
        };
        Ok(Box::new(Http3 {
            certificate: Http3::certificate_of(file)?,
            name: self.name.clone(),
            streams: self.streams,
            post_quantum: self.post_quantum,
        }))
    }
}

/// `WEIGHT:SIZE:PATH`.
fn part(text: &str) -> Result<(u32, Object)> {
    let mut parts = text.splitn(3, ':');
    let mut next = || parts.next().context("it is WEIGHT:SIZE:PATH");
    let (weight, size, path) = (next()?.parse()?, next()?.parse()?, next()?);
    ensure!(path.starts_with('/'), "a path begins with a slash");
    Ok((weight, Object::new(path, size)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_weight_size_and_path() {
        assert_eq!(part("4:512:/a:b").unwrap(), (4, Object::new("/a:b", 512)));
        for wrong in ["", "4:512", "x:1:/a", "1:x:/a", "1:2:a"] {
            assert!(part(wrong).is_err(), "{wrong}");
        }
    }
}
