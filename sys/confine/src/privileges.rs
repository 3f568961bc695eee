//! Capabilities and no_new_privs (`capabilities(7)`).

use rustix::io::Errno;
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, capability_is_in_bounding_set,
    clear_ambient_capability_set, remove_capability_from_bounding_set, set_capabilities,
    set_no_new_privs,
};

/// Capabilities that the control plane keeps, with their purpose.
pub const RETAINED_CAPABILITIES: &[(&str, &str)] = &[
    ("CAP_NET_ADMIN", "creates and configures TAP devices, promiscuous uplinks, large buffers"),
    ("CAP_NET_RAW", "opens packet sockets and AF_XDP sockets"),
    ("CAP_IPC_LOCK", "maps memory for AF_XDP sockets beyond the limit of locked memory"),
    ("CAP_SYS_ADMIN", "enters network namespaces"),
    ("CAP_DAC_OVERRIDE", "accesses sockets and namespaces of a VM's user"),
    ("CAP_NET_BIND_SERVICE", "listens on a port below 1024 if configured in `[api]`"),
];

/// Flags of [`RETAINED_CAPABILITIES`], in the same order.
const FLAGS: [CapabilitySet; 6] = [
    CapabilitySet::NET_ADMIN,
    CapabilitySet::NET_RAW,
    CapabilitySet::IPC_LOCK,
    CapabilitySet::SYS_ADMIN,
    CapabilitySet::DAC_OVERRIDE,
    CapabilitySet::NET_BIND_SERVICE,
];

/// Capabilities of the launcher of VMs: it sets users, groups, owners of folders and memory limits
/// of VMs, and ends VMs.
const LAUNCHER_CAPABILITIES: CapabilitySet = CapabilitySet::SETUID
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETPCAP)
    .union(CapabilitySet::CHOWN)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::SYS_RESOURCE);

/// Capabilities of a thread after a reduction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RemainingCapabilities {
    /// Names of the remaining capabilities (`CAP_...`).
    pub(crate) remaining: Vec<&'static str>,
    /// True if the capability bounding set is empty, so that an executed program could gain no
    /// capability.
    pub(crate) is_bounding_set_empty: bool,
}

/// Drops all capabilities except those that the control plane needs.
///
/// # Errors
/// The error of the kernel.
pub(crate) fn keep_control_plane_capabilities() -> Result<RemainingCapabilities, Errno> {
    drop_to(retained(), CapabilitySet::empty())
}

/// Drops all capabilities except those that the launcher of VMs needs, and limits what programs
/// that it executes can gain to these.
///
/// # Errors
/// The error of the kernel.
pub(crate) fn keep_launcher_capabilities() -> Result<RemainingCapabilities, Errno> {
    drop_to(LAUNCHER_CAPABILITIES, LAUNCHER_CAPABILITIES)
}

/// Drops all capabilities of the calling thread.
///
/// # Errors
/// The error of the kernel.
pub(crate) fn drop_all_capabilities() -> Result<RemainingCapabilities, Errno> {
    drop_to(CapabilitySet::empty(), CapabilitySet::empty())
}

/// Prevents executed programs from gaining privileges (`no_new_privs`).
///
/// # Errors
/// The error of the kernel.
pub(crate) fn prevent_new_privileges() -> Result<(), Errno> {
    set_no_new_privs(true)
}

fn drop_to(
    retained: CapabilitySet,
    bounding: CapabilitySet,
) -> Result<RemainingCapabilities, Errno> {
    // The bounding set is reduced first, because that needs a capability itself.
    let bounding_is_empty = reduce_bounding_set(bounding)? && bounding.is_empty();
    clear_ambient_capability_set()?;
    let permitted = capabilities(None)?.permitted & retained;
    let sets =
        CapabilitySets { effective: permitted, permitted, inheritable: CapabilitySet::empty() };
    set_capabilities(None, sets)?;
    let remaining = capabilities(None)?;
    let union = remaining.effective | remaining.permitted | remaining.inheritable;
    Ok(RemainingCapabilities { remaining: names(union), is_bounding_set_empty: bounding_is_empty })
}

/// Reduces the capability bounding set to `retained`. Returns false, without a change, if
/// `CAP_SETPCAP` is missing. The bounding set only matters for executed programs.
fn reduce_bounding_set(retained: CapabilitySet) -> Result<bool, Errno> {
    for number in 0..u64::BITS {
        let capability = CapabilitySet::from_bits_retain(1 << number);
        if retained.contains(capability) {
            continue;
        }
        match capability_is_in_bounding_set(capability) {
            Ok(false) => {}
            Ok(true) => match remove_capability_from_bounding_set(capability) {
                Ok(()) => {}
                Err(Errno::PERM) => return Ok(false),
                Err(errno) => return Err(errno),
            },
            // The kernel defines no further capabilities.
            Err(Errno::INVAL) => break,
            Err(errno) => return Err(errno),
        }
    }
    Ok(true)
}

fn retained() -> CapabilitySet {
    FLAGS.into_iter().fold(CapabilitySet::empty(), CapabilitySet::union)
}

fn names(set: CapabilitySet) -> Vec<&'static str> {
    let flagged = RETAINED_CAPABILITIES.iter().zip(FLAGS).filter(|(_, flag)| set.contains(*flag));
    let mut names: Vec<_> = flagged.map(|((name, _), _)| *name).collect();
    if !retained().contains(set) {
        names.push("others");
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_flags_are_of_the_same_capabilities() {
        assert_eq!(RETAINED_CAPABILITIES.len(), FLAGS.len());
        for (flag, (name, _)) in FLAGS.into_iter().zip(RETAINED_CAPABILITIES) {
            let spelled: String =
                flag.iter_names().map(|(name, _)| format!("CAP_{name}")).collect();
            assert_eq!(spelled, *name);
            assert_eq!(names(flag), [*name]);
        }
        assert_eq!(names(CapabilitySet::SYS_MODULE), ["others"]);
    }

    #[test]
    fn a_thread_keeps_nothing_and_its_process_everything() {
        let before = capabilities(None).unwrap();
        let dropped = std::thread::spawn(|| drop_all_capabilities().unwrap()).join().unwrap();
        assert_eq!(dropped.remaining, Vec::<&str>::new());
        assert_eq!(capabilities(None).unwrap(), before);
    }
}
