//! Names of recorded objects.

use suimon_recording::ObjectNames;

/// Adds names of objects to `names`. Numbers of objects are never reused, so earlier names remain
/// valid.
pub(crate) fn add_names(names: &mut ObjectNames, added: ObjectNames) {
    names.disks.extend(added.disks);
    names.ports.extend(added.ports);
    names.stores.extend(added.stores);
}

/// Returns the name of the store that a stream with this number recorded; the number itself if it
/// is unknown.
pub(crate) fn store_name(names: &ObjectNames, number: &str) -> String {
    let name = number.parse().ok().and_then(|number: u32| names.stores.get(&number));
    name.cloned().unwrap_or_else(|| number.to_owned())
}
