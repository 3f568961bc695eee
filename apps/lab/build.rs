//! Tells the program from which commit it was built, so that a run says what made it.

fn main() {
    suimon_built_from::tell();
}
