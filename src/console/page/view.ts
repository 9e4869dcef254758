import * as vendor from './vendor/htm-preact.ts';

export interface View {
  readonly type: unknown;
}

interface Library {
  html(parts: TemplateStringsArray, ...values: readonly unknown[]): View;
  render(view: View, parent: Element): void;
  useState<T>(initial: T | (() => T)): readonly [T, (next: T | ((before: T) => T)) => void];
  /** A returned function ends the effect. */
  useEffect(effect: () => void, inputs?: readonly unknown[]): void;
  useRef<T>(initial: T): { current: T };
}

export const { html, render, useState, useEffect, useRef } = vendor as unknown as Library; // minified, without types
