export function VmPage() { return null; }
