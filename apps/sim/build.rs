//! Sets `SUIMON_COMMIT` to the commit of the source, which reports of failures state, so that a
//! failure can be reproduced.

fn main() {
    suimon_built_from::set_commit();
}
