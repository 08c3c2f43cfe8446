//! Messages for the operator, on standard error.

use std::io::{self, IsTerminal};

use anyhow::Context as _;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;

use afpa_config::{Choice, Log, LogFormat};

/// Overrides `[log] level`, and takes filters such as `info,afpa_cache=debug`.
pub const VARIABLE: &str = "AFPA_LOG";

/// Starts logging for the whole process.
///
/// # Errors
/// When `AFPA_LOG` is not a filter, or logging has been started before.
pub fn start(settings: &Log) -> anyhow::Result<()> {
    let filter = filter(settings, std::env::var(VARIABLE).ok().as_deref())?;
    let colours = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let subscriber = subscriber(settings.format, filter, colours, || afpa_say::Errors);
    tracing::subscriber::set_global_default(subscriber).context("logging was started twice")
}

fn filter(settings: &Log, variable: Option<&str>) -> anyhow::Result<Targets> {
    let Some(text) = variable.filter(|text| !text.is_empty()) else {
        let level: Targets = settings.level.word().parse().context("a level is a filter")?;
        // AFPA has lines of its own for what happens to the fleet, one for each event.
        return Ok(level.with_target("async_nats", LevelFilter::OFF));
    };
    text.parse().with_context(|| {
        format!("{VARIABLE}={text:?} is not a filter such as info,afpa_cache=debug")
    })
}

type Subscriber = Box<dyn tracing::Subscriber + Send + Sync>;

fn subscriber<W>(format: LogFormat, filter: Targets, colours: bool, writer: W) -> Subscriber
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let builder = tracing_subscriber::fmt()
        // The filter decides.
        .with_max_level(tracing::Level::TRACE)
        .with_writer(writer)
        // It would print them, and panic where that fails.
        .log_internal_errors(false);
    match format {
        LogFormat::Text => {
            Box::new(builder.with_ansi(colours).with_target(false).finish().with(filter))
        }
        LogFormat::Json => Box::new(builder.json().flatten_event(true).finish().with(filter)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use afpa_config::{AccessFormat, AccessTarget, Level};
    use std::io::Write;
    use std::sync::{Arc, Mutex};

    #[derive(Clone, Default)]
    struct Memory(Arc<Mutex<Vec<u8>>>);

    impl Write for Memory {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn settings(format: LogFormat) -> Log {
        Log {
            level: Level::Warn,
            format,
            access: AccessTarget::Off,
            access_format: AccessFormat::Combined,
            access_fields: Vec::new(),
            access_queue: 0,
        }
    }

    /// The output for one warning and one message of level info.
    fn written(format: LogFormat, variable: Option<&str>) -> String {
        let memory = Memory::default();
        let writer = memory.clone();
        let filter = filter(&settings(format), variable).unwrap();
        let subscriber = subscriber(format, filter, false, move || writer.clone());
        tracing::subscriber::with_default(subscriber, || {
            tracing::warn!(port = 80, "look");
            tracing::info!("fine");
        });
        String::from_utf8(memory.0.lock().unwrap().clone()).unwrap()
    }

    #[test]
    fn the_level_decides_and_the_variable_goes_before_it() {
        let text = written(LogFormat::Text, None);
        assert!(text.contains("WARN look port=80") && !text.contains("fine"), "{text}");
        assert!(written(LogFormat::Text, Some("info")).contains("INFO fine"));
        assert_eq!(written(LogFormat::Text, Some("error")), "");
    }

    #[test]
    fn json_is_one_object_a_line() {
        let text = written(LogFormat::Json, Some("info"));
        let lines: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), 2);
        assert_eq!((&lines[0]["message"], &lines[0]["port"]), (&"look".into(), &80.into()));
    }

    #[test]
    fn a_wrong_filter_is_named() {
        let error = filter(&settings(LogFormat::Text), Some("afpa=loud")).unwrap_err().to_string();
        assert_eq!(error, "AFPA_LOG=\"afpa=loud\" is not a filter such as info,afpa_cache=debug");
    }
}
