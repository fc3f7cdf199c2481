import 'uplot/dist/uPlot.min.css';
import './style/tokens.css';
import './style/frame.css';
import './style/parts.css';
import './style/views.css';
import { render } from 'preact';
import { watchKeys } from './state/keys.ts';
import { live } from './state/live.ts';
import { watchHistory } from './state/route.ts';
import { watchWindow } from './state/window.ts';
import { Shell } from './view/shell.tsx';

watchHistory();
watchWindow();
watchKeys();
live.start();
render(<Shell />, document.getElementById('page')!);
