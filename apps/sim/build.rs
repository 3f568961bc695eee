//! Tells the program from which commit it was built, so that a failure can be replayed.

fn main() {
    suimon_built_from::tell();
}
