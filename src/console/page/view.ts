import * as library from 'htm/preact/standalone';

export type View = Readonly<{ type: unknown }>;

interface Library {
  html(parts: TemplateStringsArray, ...values: readonly unknown[]): View;
  render(view: View, parent: Element): void;
  useState<T>(initial: T | (() => T)): readonly [T, (next: T | ((before: T) => T)) => void];
  /** A returned function ends the effect. */
  useEffect(effect: () => void, inputs?: readonly unknown[]): void;
  useRef<T>(initial: T): { current: T };
}

export const { html, render, useState, useEffect, useRef } = library as unknown as Library; // without the types of preact
