export function SriovPage() { return null; }
