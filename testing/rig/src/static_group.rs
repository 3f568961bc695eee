//! Static link aggregation group of a switch, built with the kernel's traffic control: frames
//! arriving at any link belong to one port, and each transmitted flow uses one link.
//!
//! ```text
//!   link 0 ─┐ redirect             veth pair
//!   link 1 ─┴──────────▶ inner ◀──────────────▶ outer   (has the address)
//!           ◀── by the destination port's last bits ──
//! ```
//!
//! Neither Open vSwitch nor the kernel's bridge has such groups, and not every kernel has the
//! bonding driver. A bridge would treat a station as moving between ports with every frame of
//! another flow.

use anyhow::Result;

use crate::namespace::Namespace;
use crate::rig::Rig;

/// Matches any frame.
const ALL: [&str; 6] = ["all", "u32", "match", "u32", "0", "0"];

/// Makes devices of a namespace the links of a group. Returns the device that represents the group.
/// IPv4 flows are distributed by their destination port; other frames use the first link.
///
/// # Errors
/// The host rejected the configuration.
pub fn make_static_group(rig: &Rig, namespace: &Namespace, links: &[String]) -> Result<String> {
    let (outer, inner) = (rig.device("lag"), rig.device("lagi"));
    namespace
        .run(&["ip", "link", "add", "name", &outer, "type", "veth", "peer", "name", &inner])?;
    for device in links.iter().chain([&outer, &inner]) {
        namespace.run(&["ip", "link", "set", device, "up"])?;
    }
    for device in links.iter().chain([&inner]) {
        namespace.run(&["tc", "qdisc", "add", "dev", device, "clsact"])?;
    }
    for link in links {
        redirect(namespace, link, &inner, "1", &ALL)?;
    }
    let bucket_count = links.len().next_power_of_two();
    let mask = format!("{:#x}", bucket_count - 1);
    for (bucket, link) in (0..bucket_count).zip(links.iter().cycle()).skip(1) {
        let port = bucket.to_string();
        let of_flow = ["ip", "u32", "match", "ip", "dport", &port, &mask];
        redirect(namespace, &inner, link, "1", &of_flow)?;
    }
    if let Some(first) = links.first() {
        redirect(namespace, &inner, first, "2", &ALL)?;
    }
    Ok(outer)
}

/// Redirects matching frames that arrive at a device to another one.
fn redirect(
    namespace: &Namespace,
    from: &str,
    to: &str,
    priority: &str,
    matching: &[&str],
) -> Result<()> {
    let filter = ["tc", "filter", "add", "dev", from, "ingress", "prio", priority, "protocol"];
    let action = ["action", "mirred", "egress", "redirect", "dev", to];
    namespace.run(&[&filter[..], matching, &action].concat()).map(|_| ())
}
