//! The choice of the generator for a load.

use afpa_generator::{Generator, Load, Workload};
use anyhow::{Result, bail};

/// The generators of this machine, and the choice of one for a task.
pub struct Generators {
    here: Vec<Box<dyn Generator>>,
    wanted: Option<String>,
}

impl Generators {
    /// The generators that can run here. With a name: that one alone.
    ///
    /// # Errors
    ///
    /// When the one that was named is unknown, or cannot run here.
    pub fn choose(wanted: Option<&str>) -> Result<Self> {
        let all = afpa_generator::generators();
        if let Some(name) = wanted {
            let Some(found) = all.iter().find(|one| one.name() == name) else {
                let names: Vec<&str> = all.iter().map(|one| one.name()).collect();
                bail!("no generator '{name}'; there are: {}", names.join(", "));
            };
            if let Some(reason) = found.lacks() {
                bail!("{name}: {reason}");
            }
        }
        let here = all.into_iter().filter(|one| one.lacks().is_none()).collect();
        Ok(Self { here, wanted: wanted.map(str::to_owned) })
    }

    /// By name; the name comes from a plan.
    pub fn named(&self, name: &str) -> Option<&dyn Generator> {
        self.here.iter().find(|one| one.name() == name).map(AsRef::as_ref)
    }

    /// Names of the generators that are here.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.here.iter().map(|one| one.name())
    }

    /// Names of the generators that can make this load, the fastest first, and why the others cannot.
    pub fn able(&self, workload: &Workload, load: &Load) -> (Vec<String>, Vec<String>) {
        let (mut able, mut reasons) = (Vec::new(), Vec::new());
        for generator in &self.here {
            if self.wanted.as_deref().is_some_and(|wanted| wanted != generator.name()) {
                continue;
            }
            match generator.can(workload, load) {
                Ok(()) => able.push(generator.name().to_owned()),
                Err(reason) => reasons.push(format!("{}: {reason}", generator.name())),
            }
        }
        (able, reasons)
    }
}
