export function VmqPage() { return null; }
