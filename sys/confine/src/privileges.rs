//! Capabilities and no_new_privs (`capabilities(7)`).

use rustix::io::Errno;
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, capability_is_in_bounding_set,
    clear_ambient_capability_set, remove_capability_from_bounding_set, set_capabilities,
    set_no_new_privs,
};

/// What the control plane keeps, and what for.
pub const KEPT: &[(&str, &str)] = &[
    ("CAP_NET_ADMIN", "makes and sets TAP devices, promiscuous uplinks, large buffers"),
    ("CAP_NET_RAW", "opens packet sockets and AF_XDP sockets"),
    ("CAP_IPC_LOCK", "shares memory with AF_XDP sockets beyond the limit of locked memory"),
    ("CAP_SYS_ADMIN", "enters network namespaces"),
    ("CAP_DAC_OVERRIDE", "reaches sockets and namespaces that belong to a VM's user"),
    ("CAP_NET_BIND_SERVICE", "listens on a port below 1024 if `[api]` says so"),
];

/// The same as flags, in the same order.
const FLAGS: [CapabilitySet; 6] = [
    CapabilitySet::NET_ADMIN,
    CapabilitySet::NET_RAW,
    CapabilitySet::IPC_LOCK,
    CapabilitySet::SYS_ADMIN,
    CapabilitySet::DAC_OVERRIDE,
    CapabilitySet::NET_BIND_SERVICE,
];

/// What came of dropping capabilities.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dropped {
    /// Names of those that are left.
    pub(crate) left: Vec<&'static str>,
    /// Whether a program that was run could get none.
    pub(crate) bounding_is_empty: bool,
}

/// Keeps what the control plane needs, as far as it is there.
///
/// # Errors
/// The kernel's words.
pub(crate) fn drop_most() -> Result<Dropped, Errno> {
    drop_to(kept())
}

/// Keeps nothing.
///
/// # Errors
/// The kernel's words.
pub(crate) fn drop_all() -> Result<Dropped, Errno> {
    drop_to(CapabilitySet::empty())
}

/// From now on no program that is run gets more than the caller has.
///
/// # Errors
/// The kernel's words.
pub(crate) fn forbid_new() -> Result<(), Errno> {
    set_no_new_privs(true)
}

fn drop_to(kept: CapabilitySet) -> Result<Dropped, Errno> {
    // The bounding set first: taking from it is a privilege itself.
    let bounding_is_empty = empty_bounding_set()?;
    clear_ambient_capability_set()?;
    let permitted = capabilities(None)?.permitted & kept;
    let sets =
        CapabilitySets { effective: permitted, permitted, inheritable: CapabilitySet::empty() };
    set_capabilities(None, sets)?;
    let left = capabilities(None)?;
    let all = left.effective | left.permitted | left.inheritable;
    Ok(Dropped { left: names(all), bounding_is_empty })
}

/// Whether it is empty now. Without `CAP_SETPCAP` it stays as it is; that matters
/// only to programs that are run, of which there are none.
fn empty_bounding_set() -> Result<bool, Errno> {
    for number in 0..u64::BITS {
        let capability = CapabilitySet::from_bits_retain(1 << number);
        match capability_is_in_bounding_set(capability) {
            Ok(false) => {}
            Ok(true) => match remove_capability_from_bounding_set(capability) {
                Ok(()) => {}
                Err(Errno::PERM) => return Ok(false),
                Err(errno) => return Err(errno),
            },
            // The kernel knows no more of them.
            Err(Errno::INVAL) => break,
            Err(errno) => return Err(errno),
        }
    }
    Ok(true)
}

fn kept() -> CapabilitySet {
    FLAGS.into_iter().fold(CapabilitySet::empty(), CapabilitySet::union)
}

fn names(set: CapabilitySet) -> Vec<&'static str> {
    let known = KEPT.iter().zip(FLAGS).filter(|(_, flag)| set.contains(*flag));
    let mut names: Vec<_> = known.map(|((name, _), _)| *name).collect();
    if !kept().contains(set) {
        names.push("others");
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_flags_are_of_the_same_capabilities() {
        assert_eq!(KEPT.len(), FLAGS.len());
        for (flag, (name, _)) in FLAGS.into_iter().zip(KEPT) {
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
        let dropped = std::thread::spawn(|| drop_all().unwrap()).join().unwrap();
        assert_eq!(dropped.left, Vec::<&str>::new());
        assert_eq!(capabilities(None).unwrap(), before);
    }
}
