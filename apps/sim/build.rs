//! Records the commit from which the program is built, so that a failure can be reproduced.

fn main() {
    suimon_built_from::set_commit();
}
