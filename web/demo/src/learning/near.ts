// Demo, learning: something that is done once, when the reader comes near.

export function whenNear(element: Element, callback: () => void): void {
  const observer = new IntersectionObserver(
    (entries) => {
      if (!entries.some((entry) => entry.isIntersecting)) return;
      observer.disconnect();
      callback();
    },
    { rootMargin: '400px' },
  );
  observer.observe(element);
}
