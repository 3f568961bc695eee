export function NetworkPage() { return null; }
