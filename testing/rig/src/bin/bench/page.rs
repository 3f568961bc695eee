//! `docs/benchmarks.md`: a section for each group of works, each with the machine that it was measured
//! on, because they are measured at different times.

/// What stands before the sections.
const PREAMBLE: &str = "# Benchmarks

Written by `make bench`. Peer and Suimon do the same work on the same machine, alternately, in pairs.
The ratio is the median of the pairs' ratios (above 1 Suimon is better), with the lowest and the highest pair beside it.

A virtual machine's CPUs may share a cache now and not a minute later. Before and after each measurement the time
is taken that one cache line needs from CPU to CPU: `near` pairs had less than 80 ns in all four, `far` pairs more.
The first line of a work has all its pairs, also those whose two halves are not alike.
The bar is the ratio that is asked for, or how much more than the peer's figure it may be.
The samples are in `target/bench/` after a run.
";

/// Works that are measured together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Group {
    Network,
    Disks,
}

impl Group {
    pub(crate) const ALL: [Self; 2] = [Self::Network, Self::Disks];

    /// How it is called on the command line.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Network => "network",
            Self::Disks => "disks",
        }
    }

    const fn heading(self) -> &'static str {
        match self {
            Self::Network => "## Network",
            Self::Disks => "## Disks",
        }
    }
}

/// Heading of the section that is written by hand.
const TARGETS: &str = "## Targets";

/// Returns the page with these sections in place of those that it has. The others stay, and so does
/// the section of targets, which comes first.
pub(crate) fn with_sections(page: &str, new: &[(Group, String)]) -> String {
    let mut whole = PREAMBLE.to_owned();
    if let Some(text) = section(page, TARGETS) {
        whole += &format!("\n{TARGETS}\n\n{}\n", text.trim());
    }
    for group in Group::ALL {
        let written = new.iter().find(|(of, _)| *of == group).map(|(_, text)| text.as_str());
        if let Some(text) = written.or_else(|| section(page, group.heading())) {
            whole += &format!("\n{}\n\n{}\n", group.heading(), text.trim());
        }
    }
    whole
}

fn section<'a>(page: &'a str, heading: &str) -> Option<&'a str> {
    let (_, rest) = page.split_once(&format!("\n{heading}\n"))?;
    Some(rest.split_once("\n## ").map_or(rest, |(text, _)| text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_measured_anew_stays() {
        let network = (Group::Network, "| a |\n- machine 1".to_owned());
        let first = with_sections("", &[network]);
        assert!(first.starts_with("# Benchmarks\n"), "{first}");
        let both = with_sections(&first, &[(Group::Disks, "| b |".to_owned())]);
        assert!(
            both.ends_with("\n## Network\n\n| a |\n- machine 1\n\n## Disks\n\n| b |\n"),
            "{both}"
        );
        assert_eq!(with_sections(&both, &[]), both);
        let again = with_sections(&both, &[(Group::Network, "| c |".to_owned())]);
        assert!(again.ends_with("\n## Network\n\n| c |\n\n## Disks\n\n| b |\n"), "{again}");
    }

    #[test]
    fn targets_stay_before_the_measurements() {
        let page = "# Old\n\n## Targets\n\n| t |\n\n## Network\n\n| a |\n";
        let written = with_sections(page, &[(Group::Network, "| c |".to_owned())]);
        assert!(written.ends_with("\n## Targets\n\n| t |\n\n## Network\n\n| c |\n"), "{written}");
    }
}
