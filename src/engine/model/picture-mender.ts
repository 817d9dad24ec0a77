// A refused request is made anew without the picture that most likely caused it, so that none makes a session unsendable. Used by index.ts.
import type { Image, Message, ModelFailure } from '../types.ts'
import { imagesIn, imagesOf } from './images.ts'

export interface PictureMender {
	/** Pictures that are left out from now on. */
	readonly refused: WeakSet<Image>
	/** A request was answered: its pictures are good. */
	taken(messages: readonly Message[]): void
	/** One request's rounds. */
	begin(): {
		/**
		 * After a refusal: marks pictures and says so, or gives undefined when there is none to blame. In turn: those of the
		 * message that the provider named (`named` counts in `messages`), those of the newest message with one not answered to
		 * before, all of them. Where the refusal does not speak of pictures at all, only those not answered to before, once.
		 */
		next(failure: ModelFailure, messages: readonly Message[], named: number | undefined): string | undefined
		/** A refusal stayed: it was not the pictures, and they are good again. */
		giveUp(failure: ModelFailure): void
	}
}

/** Remembers for one client which pictures a provider took and which it refused. */
export function pictureMender(): PictureMender {
	const refused = new WeakSet<Image>()
	const accepted = new WeakSet<Image>()
	return {
		refused,
		taken(messages) {
			for (const image of imagesIn(messages)) accepted.add(image)
		},
		begin() {
			const blamed: Image[] = []
			let guessed = false
			let rounds = 0
			return {
				next(failure, messages, named) {
					if (failure.streamed || failure.code !== 'invalid_request') return undefined
					const all = imagesIn(messages)
					const isNew = (image: Image) => !accepted.has(image)
					const there = named === undefined ? [] : (messages[named]?.blocks.flatMap(imagesOf) ?? [])
					const newest = imagesIn(messages.filter((message) => imagesIn([message]).some(isNew)).slice(-1))
					let choice: Image[] = []
					if (failure.badImage) choice = rounds++ < 2 ? ([there, newest].find((some) => some.length > 0) ?? all) : all
					else if (named === undefined && !guessed) {
						guessed = true
						choice = all.filter(isNew)
					}
					if (choice.length === 0) return undefined
					for (const image of choice) refused.add(image)
					blamed.push(...choice)
					const labels = choice.map((image) => image.label)
					const shown =
						labels.length > 3 ? `${labels.slice(0, 3).join('; ')} and ${labels.length - 3} more` : labels.join('; ')
					return `The provider refused the request; it is sent once more without ${labels.length === 1 ? 'the image' : 'the images'} ${shown}. (${failure.message})`
				},
				giveUp(failure) {
					if (failure.code !== 'invalid_request' || blamed.length === 0) return
					delete failure.badImage
					for (const image of blamed) refused.delete(image)
				},
			}
		},
	}
}
