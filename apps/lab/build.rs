//! Records the commit from which the program is built, so that a run identifies the program that
//! made it.

fn main() {
    suimon_built_from::set_commit();
}
