//! Sets `SUIMON_COMMIT` to the commit of the source, which a run records as the version of the
//! lab's program.

fn main() {
    suimon_built_from::set_commit();
}
