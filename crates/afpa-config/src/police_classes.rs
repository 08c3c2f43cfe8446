//! `[[police.class]]`: clients that get a share of the new connections, whatever load other clients cause.

use afpa_police::{Class, Classes};

use crate::finding::Location;
use crate::items::Item;
use crate::police::prefix;
use crate::reader::Reader;
use crate::rules;
use crate::settings::Instance;
use crate::units::Unfit;

/// A `[[police.class]]`.
#[derive(Clone, Debug, PartialEq)]
pub struct PoliceClass {
    /// The class itself.
    pub class: Class,
    /// Which `[[police.class]]`.
    pub(crate) instance: Instance,
    /// Where it begins.
    pub(crate) location: Location,
}

/// Reads all classes.
pub(crate) fn read(reader: &mut Reader<'_>) -> Vec<PoliceClass> {
    let table = reader.section("police").table;
    let police = Item { path: "police", instance: [0; 4], table, location: Location::Nowhere };
    let items = reader.items("police.class", Some(&police));
    let classes = items.into_iter().map(|item| {
        let mut s = reader.at(&item);
        let class = Class {
            name: s.required("name", "name", name).unwrap_or_default(),
            share: s.count("share", 10, 1..=100) as u8,
            prefixes: s.texts("prefixes", "prefixes", Vec::new(), prefix),
            listeners: s.texts("listeners", "addresses", Vec::new(), rules::tcp),
        };
        PoliceClass { class, instance: item.instance, location: item.location }
    });
    classes.collect()
}

fn name(text: &str) -> Result<String, Unfit> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if text.is_empty() || text.len() > 32 || !text.chars().all(fits) {
        let cause = format!("\"{text}\" is not the name of a class");
        return Err(Unfit::new(cause, "write up to 32 letters, digits, `-`, `_` and `.`"));
    }
    if text == Classes::OTHERS {
        let cause = format!("\"{text}\" is the name of the clients in no class");
        return Err(Unfit::new(cause, "write another name"));
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::{Machine, Overrides, Source, parse_text};

    const SITE: &str = "[[site]]\nroot = \"/\"\nlisten = [\"0.0.0.0:80\"]\n";

    fn parsed(classes: &str) -> Result<crate::Loaded, String> {
        let text = format!("[police]\n{classes}\n{SITE}");
        let source = Source::new(Path::new("afpa.toml").display().to_string(), text);
        parse_text(source, &Overrides::default(), &Machine::probe()).map_err(|e| e.to_string())
    }

    #[test]
    fn classes_are_read_in_order() {
        let loaded = parsed(
            "connections_per_second = 1000\n\
             [[police.class]]\nname = \"paying\"\nshare = 60\nprefixes = [\"10.0.0.0/8\"]\n\
             [[police.class]]\nname = \"front\"\nlisteners = [\"0.0.0.0:80\"]",
        );
        let police = loaded.unwrap().config.police;
        let read: Vec<_> =
            police.classes.iter().map(|c| (c.class.name.as_str(), c.class.share)).collect();
        assert_eq!(read, [("paying", 60), ("front", 10)]);
        assert_eq!(police.all_settings().classes.len(), 2);
    }

    #[test]
    fn what_cannot_be_shared_has_a_line_and_a_remedy() {
        let rate = "connections_per_second = 1000\n";
        let class = |rest: &str| format!("[[police.class]]\n{rest}\n");
        let ten = |name: &str| class(&format!("name = \"{name}\"\nprefixes = [\"10.0.0.0/8\"]"));
        for (text, says, remedy) in [
            (ten("a"), "afpa.toml:2:1: error: a share is one of", "= set it under [police]"),
            (
                format!("{rate}{}", class("name = \"a\"")),
                "afpa.toml:3:1: error: nobody is in the class \"a\"",
                "= set `prefixes` or `listeners`",
            ),
            (
                format!("{rate}{}", class("name = \"a\"\nlisteners = [\"0.0.0.0:81\"]")),
                "no site listens on 0.0.0.0:81",
                "= write an address as it stands in `listen`",
            ),
            (
                format!("{rate}{}{}", ten("a"), ten("b")),
                "`prefixes` has 10.0.0.0/8, which a class has already",
                "= remove one of the two",
            ),
            (
                format!(
                    "{rate}{}{}",
                    class("name = \"a\"\nshare = 60\nprefixes = [\"10.0.0.0/8\"]"),
                    class("name = \"b\"\nshare = 41\nprefixes = [\"11.0.0.0/8\"]")
                ),
                "the shares of all classes are 101 per cent",
                "= lower them to 100 together",
            ),
            (
                format!("{rate}{}", class("name = \"others\"\nprefixes = [\"::/0\"]")),
                "\"others\" is the name of the clients in no class",
                "= write another name",
            ),
            (
                format!("{rate}{}", class("share = 5\nprefixes = [\"::/0\"]")),
                "afpa.toml:3:1: error: a class without a `name`",
                "= write name = \"partners\"",
            ),
            (
                format!("{rate}{}", class("name = \"a\"\nshare = 0\nprefixes = [\"::/0\"]")),
                "`share`",
                "1",
            ),
        ] {
            let error = parsed(&text).err().unwrap_or_default();
            assert!(error.contains(says) && error.contains(remedy), "{text}\n{error}");
        }
        let many: String = (0..16)
            .map(|n| class(&format!("name = \"c{n}\"\nshare = 1\nprefixes = [\"10.{n}.0.0/16\"]")))
            .collect();
        let error = parsed(&format!("{rate}{many}")).unwrap_err();
        assert!(error.contains("there are more than 15 classes"), "{error}");
    }
}
