//! Removes what killed tests and harnesses left behind: processes, namespaces, mounts, loop
//! devices, huge pages and folders.
#![forbid(unsafe_code)]

fn main() {
    suimon_rig::sweep_leftovers();
}
